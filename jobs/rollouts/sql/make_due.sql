-- Make the next held runs of released waves due, for promotion to queue.
-- Parameters: submission bigint, after uuid, last uuid, deadline float (seconds from the due time, or
-- null), most int.
-- Result: id of each run that became due, in order.
-- Keeps true: rows are locked in id order, as by admission. The deadline of a run that has not started
-- counts from its release.
WITH chosen AS MATERIALIZED (
    SELECT id, due_at FROM {runs}
    WHERE submission_id = %(submission)s AND state = 'held' AND blocked_by = 'wave'
      AND id > %(after)s AND id <= %(last)s
    ORDER BY id LIMIT %(most)s
    FOR UPDATE
)
UPDATE {runs} r SET
    blocked_by = '',
    next_at = due.at,
    deadline_at = CASE WHEN r.attempt_count = 0 AND %(deadline)s::float8 IS NOT NULL
        THEN due.at + make_interval(secs => %(deadline)s::float8) ELSE r.deadline_at END
FROM chosen c
CROSS JOIN LATERAL (
    SELECT greatest(clock_timestamp(), c.due_at) AS at) AS due
WHERE r.id = c.id
RETURNING r.id
