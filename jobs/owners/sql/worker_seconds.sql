-- How long workers ran the ended attempts of all owners' runs of a span.
--   first, last: ids of runs, from `first` to before `last` (ids begin with their time)
-- Result: one row with the seconds.
-- Cost: all attempts of the span; the caller limits the time.
SELECT coalesce(sum(extract(epoch FROM ended_at - started_at)), 0)::float8 AS worker_seconds
FROM jobs_attempt
WHERE run_id >= %(first)s AND run_id < %(last)s AND started_at IS NOT NULL
