-- Let promotion queue locked held runs of a wave when they are due.
-- Parameters: ids uuid[], deadline float (seconds from the due time, or null).
-- Result: id of each.
-- Keeps true: the deadline of a run that has not started counts from its release.
UPDATE {runs} r SET
    blocked_by = '',
    next_at = due.at,
    deadline_at = CASE WHEN r.attempt_count = 0 AND %(deadline)s::float8 IS NOT NULL
        THEN due.at + make_interval(secs => %(deadline)s::float8) ELSE r.deadline_at END
FROM {runs} h
CROSS JOIN LATERAL (
    SELECT greatest(clock_timestamp(), h.due_at) AS at) AS due
WHERE r.id = ANY(%(ids)s) AND h.id = r.id
RETURNING r.id
