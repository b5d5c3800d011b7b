-- Read the totals of all owners in each minute of a span.
-- Parameters: start and end timestamptz (end not included).
-- Result: a row for each minute in which anything ended.
SELECT minute, succeeded, failed, retrying, cancelled, expired,
    wait_buckets, wait_counts, run_buckets, run_counts
FROM jobs_rolluptotal
WHERE minute >= %(start)s AND minute < %(end)s
