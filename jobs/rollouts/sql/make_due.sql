-- Let promotion queue locked held runs of a wave when they are due.
-- Parameters: ids uuid[], deadline float (seconds from the due time, or null).
-- Result: id of each.
-- Keeps true: the deadline of a run that has not started counts from its release.
WITH moment AS MATERIALIZED (
    SELECT clock_timestamp() AS at
)
UPDATE {runs} r SET
    blocked_by = '',
    next_at = greatest(moment.at, r.due_at),
    deadline_at = CASE WHEN r.attempt_count = 0 AND %(deadline)s::float8 IS NOT NULL
        THEN greatest(moment.at, r.due_at) + make_interval(secs => %(deadline)s::float8)
        ELSE r.deadline_at END
FROM moment
WHERE r.id = ANY(%(ids)s)
RETURNING r.id
