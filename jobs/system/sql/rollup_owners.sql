-- Add up the rollups of each owner in a span.
-- Parameters: start and end timestamptz (end not included); owners bigint[], or null for all; ended
-- text[]: the outcomes with which a run ends.
-- Result: a row for each owner with any: owner_id, runs (that ended), failed, worker_seconds.
SELECT owner_id,
    coalesce(sum(count) FILTER (WHERE outcome = ANY(%(ended)s)), 0)::bigint AS runs,
    coalesce(sum(count) FILTER (WHERE outcome = 'failed'), 0)::bigint AS failed,
    sum(worker_seconds) AS worker_seconds
FROM jobs_rollup
WHERE minute >= %(start)s AND minute < %(end)s
    AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
GROUP BY owner_id
ORDER BY worker_seconds DESC, owner_id
