-- Count the outcomes of each minute of a span.
-- Parameters: start and end timestamptz (end not included); owners bigint[], or null for all.
-- Result: a row for each minute and outcome that it has: minute, outcome, count.
SELECT minute, outcome, sum(count)::bigint AS count
FROM jobs_rollup
WHERE minute >= %(start)s AND minute < %(end)s
    AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
GROUP BY minute, outcome
