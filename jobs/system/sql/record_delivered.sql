-- Record that a delivery has arrived.
-- Parameters: id bigint, attempt jsonb: [seconds since 1970, status, problem, milliseconds], most int:
--   attempts that stay in the row.
-- Result: id, if the delivery was waiting.
-- Keeps true: an endpoint's row is written only when it changes, at most once a minute: deliveries to one
--   endpoint do not wait for each other.
WITH delivered AS (
    UPDATE jobs_webhookdelivery d SET
        state = 'delivered', ended_at = clock_timestamp(), attempt_count = d.attempt_count + 1,
        tries = jsonb_path_query_array(d.tries || jsonb_build_array(%(attempt)s::jsonb),
            ('$[last - ' || %(most)s - 1 || ' to last]')::jsonpath)
    WHERE d.id = %(id)s AND d.state = 'waiting'
    RETURNING d.id, d.endpoint_id
), marked AS (
    UPDATE jobs_webhookendpoint e
    SET failure_count = 0, retry_at = NULL, last_delivered_at = clock_timestamp()
    FROM delivered
    WHERE e.id = delivered.endpoint_id
      AND (e.failure_count > 0 OR e.last_delivered_at IS NULL
           OR e.last_delivered_at < clock_timestamp() - interval '1 minute')
)
SELECT id FROM delivered
