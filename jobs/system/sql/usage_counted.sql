-- Add up the rollups of an owner in some spans that follow one another.
-- Parameters: owner; limits timestamptz[]: where the spans begin, rising, and where the last one ends;
-- start and end timestamptz (end not included): minutes outside are not read.
-- Result: a row for each span and outcome that it has: number (0 for the first span), outcome, count,
-- worker_seconds.
-- Cost: the owner's rollups from start to end, by rollup_of_owner.
SELECT width_bucket(minute, %(limits)s::timestamptz[]) - 1 AS number, outcome,
    sum(count)::bigint AS count, sum(worker_seconds) AS worker_seconds
FROM jobs_rollup
WHERE owner_id = %(owner)s AND minute >= %(start)s AND minute < %(end)s
GROUP BY number, outcome
