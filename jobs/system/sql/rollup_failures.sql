-- Add up the failed attempts of a span by task and error.
-- Parameters: start and end timestamptz (end not included); owners bigint[], or null for all; most int.
-- Result: task, error_type, failed (runs that ended so), retried (attempts), owners (how many),
-- last_minute; most failed runs first.
SELECT task, error_type,
    coalesce(sum(count) FILTER (WHERE outcome = 'failed'), 0)::bigint AS failed,
    coalesce(sum(count) FILTER (WHERE outcome = 'retrying'), 0)::bigint AS retried,
    count(DISTINCT owner_id) AS owners, max(minute) AS last_minute
FROM jobs_rollup
WHERE outcome IN ('failed', 'retrying') AND minute >= %(start)s AND minute < %(end)s
    AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
GROUP BY task, error_type
ORDER BY failed DESC, retried DESC, task, error_type
LIMIT %(most)s
