-- How long workers ran the ended attempts of the runs of a span, for each owner.
--   first, last: ids of runs, from `first` to before `last` (ids begin with their time)
-- Result: one row for each owner that has any: owner_id and seconds.
-- Cost: all runs and attempts of the span; the caller limits the time.
SELECT r.owner_id, sum(extract(epoch FROM a.ended_at - a.started_at))::float8 AS worker_seconds
FROM jobs_attempt AS a
JOIN jobs_run AS r ON r.id = a.run_id
WHERE a.run_id >= %(first)s AND a.run_id < %(last)s AND a.started_at IS NOT NULL
    AND r.id >= %(first)s AND r.id < %(last)s
GROUP BY r.owner_id
