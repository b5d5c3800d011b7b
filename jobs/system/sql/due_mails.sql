-- Claim the mails that are due: what is held becomes what is being sent.
-- Parameters: claim double precision: seconds for which no other round sends them; most int.
-- Result: id, failure_count, sent (microseconds of the last mail), owner (slug; null: the installation's).
UPDATE jobs_maildigest m SET
    next_at = clock_timestamp() + make_interval(secs => %(claim)s),
    sending = coalesce(m.sending, m.held),
    sending_count = CASE WHEN m.sending IS NULL THEN m.held_count ELSE m.sending_count END,
    held = CASE WHEN m.sending IS NULL THEN '[]' ELSE m.held END,
    held_count = CASE WHEN m.sending IS NULL THEN 0 ELSE m.held_count END
FROM jobs_mailsubscription s
LEFT JOIN jobs_owner o ON o.id = s.owner_id
WHERE s.id = m.subscription_id AND s.is_active
  AND m.id = ANY(ARRAY(
    SELECT id FROM jobs_maildigest
    WHERE (held_count > 0 OR sending IS NOT NULL) AND next_at <= clock_timestamp()
    ORDER BY next_at LIMIT %(most)s FOR UPDATE SKIP LOCKED))
RETURNING m.id, m.failure_count, m.subscription_id,
    coalesce(extract(epoch FROM m.sent_at) * 1000000, 0)::bigint AS sent, o.slug AS owner
