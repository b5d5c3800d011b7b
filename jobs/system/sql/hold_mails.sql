-- Add events to the mails that are to be sent, each to the one of its subscription, subject and change.
-- Parameters: side by side: subscriptions bigint[], subjects, changes text[], lines jsonb[], counts int[];
--   most int: lines that stay; quiet double precision: seconds between two mails.
-- Result: none.
INSERT INTO jobs_maildigest AS m
    (subscription_id, subject, change, held, held_count, next_at)
SELECT g.subscription, g.subject, g.change, g.lines, g.count, clock_timestamp()
FROM unnest(
    %(subscriptions)s::bigint[], %(subjects)s::text[], %(changes)s::text[], %(lines)s::jsonb[],
    %(counts)s::int[]
) AS g (subscription, subject, change, lines, count)
JOIN jobs_mailsubscription s ON s.id = g.subscription
ON CONFLICT (subscription_id, subject, change) DO UPDATE SET
    held = jsonb_path_query_array(m.held || excluded.held,
        ('$[last - ' || %(most)s - 1 || ' to last]')::jsonpath),
    held_count = m.held_count + excluded.held_count,
    next_at = CASE WHEN m.held_count = 0 AND m.sending IS NULL
        THEN greatest(clock_timestamp(), m.sent_at + make_interval(secs => %(quiet)s))
        ELSE m.next_at END
