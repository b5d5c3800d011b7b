-- Count the outcomes of some owners in each minute of a span.
-- Parameters: start and end timestamptz (end not included); owners bigint[].
-- Result: a row for each minute and outcome that it has: minute, outcome, count.
SELECT minute, outcome, sum(count)::bigint AS count
FROM jobs_rollup
WHERE minute >= %(start)s AND minute < %(end)s
    AND owner_id = ANY(%(owners)s::bigint[])
GROUP BY minute, outcome
