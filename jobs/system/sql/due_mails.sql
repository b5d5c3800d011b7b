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
    -- Only active subscriptions, or the digests of inactive ones would fill the limit.
    SELECT d.id FROM jobs_maildigest d
    JOIN jobs_mailsubscription a ON a.id = d.subscription_id AND a.is_active
    WHERE (d.held_count > 0 OR d.sending IS NOT NULL) AND d.next_at <= clock_timestamp()
    ORDER BY d.next_at LIMIT %(most)s FOR UPDATE OF d SKIP LOCKED))
RETURNING m.id, m.failure_count, m.subscription_id,
    coalesce(extract(epoch FROM m.sent_at) * 1000000, 0)::bigint AS sent, o.slug AS owner
