-- Count the runs of waves.
-- Parameters: submission bigint; firsts uuid[] and lasts uuid[]: the ids of each range of runs.
-- Result: a row for each range, in order: failed, open (how many have not ended; counted only if some have
-- failed, else 0 or 1).
-- Cost: parts of one index of the submission's runs, by state; most ranges stop at the first open run.
WITH unended AS (
    SELECT state FROM unnest(ARRAY[
        'queued', 'held', 'scheduled', 'retrying', 'admitted', 'running', 'cancelling']) AS u (state)
)
SELECT f.failed, CASE
    WHEN f.failed = 0 THEN (SELECT count(*) FROM (
        SELECT FROM unended CROSS JOIN LATERAL (
            SELECT FROM jobs_run r
            WHERE r.submission_id = %(submission)s AND r.state = unended.state
              AND r.id BETWEEN w.first AND w.last
            LIMIT 1) AS any_run
        LIMIT 1) AS one)
    ELSE (SELECT count(*) FROM jobs_run r
        WHERE r.submission_id = %(submission)s AND r.id BETWEEN w.first AND w.last
          AND r.state IN (SELECT state FROM unended))
    END AS open
FROM unnest(%(firsts)s::uuid[], %(lasts)s::uuid[]) WITH ORDINALITY AS w (first, last, number)
CROSS JOIN LATERAL (
    SELECT count(*) AS failed FROM jobs_run r
    WHERE r.submission_id = %(submission)s AND r.state = 'failed' AND r.id BETWEEN w.first AND w.last
) AS f
ORDER BY w.number
