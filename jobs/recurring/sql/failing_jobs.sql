-- Jobs whose newest run that ended has failed: what the list of failing jobs shows.
-- Parameters: owners bigint[] (NULL: all), most int: how many of the newest failed runs are read.
-- Result: job_id; one more row, with NULL, when there are older failed runs that were not read.
-- Keeps true: both steps go by index (run_by_state, run_of_job), whatever the length of history.
WITH failed AS MATERIALIZED (
    SELECT id, job_id FROM jobs_run
    WHERE state = 'failed' AND job_id IS NOT NULL
        AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
    ORDER BY id DESC
    LIMIT %(most)s + 1
), looked AS (
    SELECT id, job_id FROM failed ORDER BY id DESC LIMIT %(most)s
), newest AS (
    SELECT DISTINCT ON (job_id) job_id, id FROM looked ORDER BY job_id, id DESC
)
SELECT newest.job_id FROM newest
-- Not NOT EXISTS: with millions of runs PostgreSQL would read them all, once, for an anti join.
LEFT JOIN LATERAL (
    SELECT true AS is_there FROM jobs_run AS run
    WHERE run.job_id = newest.job_id AND run.id > newest.id
        AND run.state IN ('succeeded', 'cancelled', 'expired')
    LIMIT 1
) AS later ON true
WHERE later.is_there IS NULL
UNION ALL
SELECT NULL WHERE (SELECT count(*) FROM failed) > %(most)s
