-- Add up the failed attempts of a span by task and error.
-- Parameters: start and end timestamptz (end not included); owners bigint[], or null for all; most int.
-- Result: task, error_type, failed (runs that ended so), retried (attempts), owners (how many),
-- last_minute; most failed runs first.
-- Cost: the failed rollups of the span. They are added up by owner first: counting distinct owners of
-- all of them would sort them on disk.
WITH each AS (
    SELECT task, error_type, owner_id,
        sum(count) FILTER (WHERE outcome = 'failed') AS failed,
        sum(count) FILTER (WHERE outcome = 'retrying') AS retried, max(minute) AS last_minute
    FROM jobs_rollup
    WHERE outcome IN ('failed', 'retrying')
        -- A snooze is no failure.
        AND (outcome = 'failed' OR error_type <> '') AND minute >= %(start)s AND minute < %(end)s
        AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
    GROUP BY task, error_type, owner_id
)
SELECT task, error_type, coalesce(sum(failed), 0)::bigint AS failed,
    coalesce(sum(retried), 0)::bigint AS retried, count(*) AS owners, max(last_minute) AS last_minute
FROM each
GROUP BY task, error_type
ORDER BY failed DESC, retried DESC, task, error_type
LIMIT %(most)s
