-- Count the attempts in the statistics of a span.
-- Parameters: start and end timestamptz (end not included).
-- Result: a row with the count.
SELECT coalesce(sum((SELECT sum(each) FROM unnest(wait_counts) AS each)), 0)::bigint AS count
FROM jobs_rollup WHERE minute >= %(start)s AND minute < %(end)s
