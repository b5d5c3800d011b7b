-- Record a failed attempt of a delivery, and of its endpoint.
-- Parameters: id bigint; attempt jsonb, most int: see record_delivered; attempts int: after which the
--   delivery has failed; delay double precision: seconds until its next attempt; failures int: in a row,
--   after which the endpoint is disabled; base, cap, asked double precision: seconds of the endpoint's
--   back-off, and what the receiver asks for; is_gone boolean: disable at once; reason text.
-- Result: endpoint_id, failure_count, is_disabled (by this attempt), if the delivery was waiting.
WITH failed AS (
    UPDATE jobs_webhookdelivery d SET
        attempt_count = d.attempt_count + 1,
        tries = jsonb_path_query_array(d.tries || jsonb_build_array(%(attempt)s::jsonb),
            ('$[last - ' || %(most)s - 1 || ' to last]')::jsonpath),
        state = CASE WHEN d.attempt_count + 1 >= %(attempts)s THEN 'failed' ELSE 'waiting' END,
        ended_at = CASE WHEN d.attempt_count + 1 >= %(attempts)s THEN clock_timestamp() END,
        next_at = clock_timestamp() + make_interval(secs => %(delay)s)
    WHERE d.id = %(id)s AND d.state = 'waiting'
    RETURNING d.endpoint_id
)
UPDATE jobs_webhookendpoint e SET
    failure_count = e.failure_count + 1,
    retry_at = clock_timestamp() + make_interval(secs => greatest(
        %(asked)s, least(%(cap)s, %(base)s * 2 ^ least(e.failure_count, 40)))),
    is_active = e.is_active AND NOT (%(is_gone)s OR e.failure_count + 1 >= %(failures)s),
    disabled_at = CASE WHEN e.is_active AND (%(is_gone)s OR e.failure_count + 1 >= %(failures)s)
        THEN clock_timestamp() ELSE e.disabled_at END,
    disabled_reason = CASE WHEN e.is_active AND (%(is_gone)s OR e.failure_count + 1 >= %(failures)s)
        THEN %(reason)s ELSE e.disabled_reason END
FROM failed WHERE e.id = failed.endpoint_id
RETURNING e.id AS endpoint_id, e.failure_count, NOT e.is_active
    AND (%(is_gone)s OR e.failure_count = %(failures)s) AS is_disabled
