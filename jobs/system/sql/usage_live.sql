-- Add up what ended in minutes without rollups, in some spans that follow one another.
-- Parameters: limits, as in usage_counted.sql; minute and end timestamptz: as in rollup_ended.sql.
-- Result: a row for each span, owner and outcome: number, owner_id, outcome, count, worker_seconds.
-- Cost: that of rollup_ended.sql; the caller limits the time.
SELECT width_bucket(e.at, %(limits)s::timestamptz[]) - 1 AS number, e.owner_id, e.outcome,
    count(*) AS count, coalesce(sum(e.run), 0)::float8 AS worker_seconds
FROM (
    {system/rollup_ended}
) AS e
GROUP BY number, e.owner_id, e.outcome
