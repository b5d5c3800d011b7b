-- Claim the deliveries that are due, to send a message for each.
-- Parameters: claim double precision: seconds for which no other round sends them; most int: messages
--   of one endpoint in the queue.
-- Result: id, attempt_count, endpoint_id, owner (slug; null: the installation's), is_probe.
-- Keeps true: of an endpoint that fails, one delivery is tried at a time, and none before its retry_at. An
--   endpoint has at most `most` deliveries that are claimed and not yet tried: a slow receiver does not
--   fill the broker. A retry that is due within the time of a claim counts as claimed.
-- Cost: for each active endpoint two looks into webhook_delivery_due, of at most `most` rows each.
WITH ready AS MATERIALIZED (
    SELECT e.id, e.failure_count > 0 AS is_failing, o.slug AS owner
    FROM jobs_webhookendpoint e
    LEFT JOIN jobs_owner o ON o.id = e.owner_id
    WHERE e.is_active AND (e.retry_at IS NULL OR e.retry_at <= clock_timestamp())
), due AS MATERIALIZED (
    SELECT d.id, r.id AS endpoint_id, r.owner, r.is_failing
    FROM ready r
    CROSS JOIN LATERAL (
        SELECT w.id FROM jobs_webhookdelivery w
        WHERE w.endpoint_id = r.id AND w.state = 'waiting' AND w.next_at <= statement_timestamp()
        ORDER BY w.next_at, w.id
        LIMIT CASE WHEN r.is_failing THEN 1 ELSE greatest(0, %(most)s - (
            SELECT count(*) FROM (
                -- Not clock_timestamp(): the index would be read from the oldest delivery on.
                SELECT FROM jobs_webhookdelivery c
                WHERE c.endpoint_id = r.id AND c.state = 'waiting'
                  AND c.next_at > statement_timestamp()
                  AND c.next_at <= statement_timestamp() + make_interval(secs => %(claim)s)
                LIMIT %(most)s
            ) AS claimed)) END
    ) AS d
), probed AS (
    UPDATE jobs_webhookendpoint e
    SET retry_at = clock_timestamp() + make_interval(secs => %(claim)s)
    FROM due WHERE e.id = due.endpoint_id AND due.is_failing
)
UPDATE jobs_webhookdelivery d SET next_at = clock_timestamp() + make_interval(secs => %(claim)s)
FROM due WHERE d.id = due.id AND d.state = 'waiting'
RETURNING d.id, d.attempt_count, d.endpoint_id, due.owner, due.is_failing AS is_probe
