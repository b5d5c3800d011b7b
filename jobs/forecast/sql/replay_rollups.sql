-- Read the statistics of the attempts of a span.
-- Parameters: start and end timestamptz (end not included).
-- Result: a row for each minute, owner, task and outcome with attempts: minute in seconds since start,
-- owner_id, task, and the histograms wait_buckets, wait_counts, run_buckets, run_counts.
SELECT extract(epoch FROM minute - %(start)s)::bigint AS minute, owner_id, task,
    wait_buckets, wait_counts, run_buckets, run_counts
FROM jobs_rollup
WHERE minute >= %(start)s AND minute < %(end)s AND wait_counts <> '{}'
ORDER BY minute, owner_id, task, outcome, error_type
