-- Add up the worker time of all owners in a span.
-- Parameters: start and end timestamptz (end not included).
-- Result: one row: worker_seconds.
SELECT coalesce(sum(worker_seconds), 0) AS worker_seconds
FROM jobs_rolluptotal
WHERE minute >= %(start)s AND minute < %(end)s
