-- Count the runs of a wave.
-- Parameters: submission bigint, first uuid, last uuid.
-- Result: one row: failed, open (how many have not ended; counted only if some have failed, else 0 or 1).
-- Cost: parts of one index of the submission's runs, by state; most rounds stop at the first open run.
WITH found AS (
    SELECT (
        SELECT count(*) FROM jobs_run
        WHERE submission_id = %(submission)s AND state = 'failed' AND id BETWEEN %(first)s AND %(last)s
    ) AS failed
), unended AS (
    SELECT state FROM unnest(ARRAY[
        'queued', 'held', 'scheduled', 'retrying', 'admitted', 'running', 'cancelling']) AS u (state)
)
SELECT failed, CASE
    WHEN failed = 0 THEN (SELECT count(*) FROM (
        SELECT FROM unended CROSS JOIN LATERAL (
            SELECT FROM jobs_run r
            WHERE r.submission_id = %(submission)s AND r.state = unended.state
              AND r.id BETWEEN %(first)s AND %(last)s
            LIMIT 1) AS any_run
        LIMIT 1) AS one)
    ELSE (SELECT count(*) FROM jobs_run r
        WHERE r.submission_id = %(submission)s AND r.id BETWEEN %(first)s AND %(last)s
          AND r.state IN (SELECT state FROM unended))
    END AS open
FROM found
