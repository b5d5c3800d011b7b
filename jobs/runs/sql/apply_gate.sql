-- Queue or hold waiting runs, as their calendars say.
-- Parameters, side by side: ids uuid[], opens timestamptz[] (null: it may start now), not_afters
-- timestamptz[] (the last moment of a start, or null), causes text[]; lease seconds.
-- Result: of each run that waits: id, state, token, queue, before (its state), is_new (publish its hint:
-- it was not queued, or had an earlier last moment).
-- Keeps true: rows are locked in id order, as by admission; a move and its entry in the history are one
-- write; a run that stays in its state has no entry.
WITH given AS (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(opens)s::timestamptz[], %(not_afters)s::timestamptz[], %(causes)s::text[]
    ) AS g (id, opens_at, not_after, cause)
), locked AS MATERIALIZED (
    SELECT r.id, r.state, r.not_after FROM jobs_run r
    WHERE r.id = ANY(%(ids)s) AND r.state IN ('scheduled', 'held', 'queued', 'retrying')
    ORDER BY r.id
    FOR UPDATE
)
UPDATE jobs_run r SET
    state = next.state,
    next_at = g.opens_at,
    not_after = g.not_after,
    blocked_by = CASE WHEN next.is_same THEN r.blocked_by ELSE '' END,
    queued_at = CASE WHEN next.state = 'queued' AND NOT next.is_same THEN now.at ELSE r.queued_at END,
    hint_check_at = CASE WHEN next.state = 'queued' AND NOT next.is_same
        THEN now.at + make_interval(secs => %(lease)s) ELSE r.hint_check_at END,
    history = CASE WHEN next.is_same THEN r.history
        ELSE r.history || jsonb_build_array(jsonb_build_array(
            next.state, extract(epoch FROM now.at), g.cause)) END
FROM locked l
JOIN given g ON g.id = l.id
CROSS JOIN (SELECT clock_timestamp() AS at) AS now
CROSS JOIN LATERAL (
    SELECT to_be.state, to_be.state = l.state AS is_same
    FROM (SELECT CASE WHEN g.opens_at IS NULL THEN 'queued' ELSE 'held' END) AS to_be (state)
) AS next
WHERE r.id = l.id AND r.id = ANY(%(ids)s)
RETURNING r.id, r.state, r.token, r.queue, l.state AS before,
    r.state = 'queued' AND (NOT next.is_same OR l.not_after < coalesce(g.not_after, 'infinity'))
    AS is_new
