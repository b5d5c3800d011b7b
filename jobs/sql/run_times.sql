-- How long workers were busy with a run of a task, of an owner's newest that have succeeded.
-- Parameters: owner_id bigint, task text, since uuid (the smallest id that counts).
-- Result: one row: count, and seconds: the mean, all attempts of a run together, of each at most ten
--   times the median; null without any.
-- Keeps true: a fixed number of rows is looked at, by indexes, however many there are.
WITH submissions AS (
    SELECT id FROM (
        SELECT id, task FROM jobs_submission WHERE owner_id = %(owner_id)s ORDER BY id DESC LIMIT 200
    ) AS newest WHERE task = %(task)s ORDER BY id DESC LIMIT 5
), jobs AS (
    SELECT id FROM jobs_job WHERE task = %(task)s AND owner_id = %(owner_id)s ORDER BY key LIMIT 20
), runs AS (
    SELECT r.* FROM submissions AS s CROSS JOIN LATERAL (
        SELECT id, started_at, ended_at FROM jobs_run
        WHERE submission_id = s.id AND state = 'succeeded' AND id >= %(since)s
        ORDER BY id DESC LIMIT 100
    ) AS r
    UNION
    SELECT r.id, r.started_at, r.ended_at FROM jobs AS j CROSS JOIN LATERAL (
        SELECT id, started_at, ended_at, state FROM jobs_run
        WHERE job_id = j.id AND id >= %(since)s ORDER BY id DESC LIMIT 10
    ) AS r WHERE r.state = 'succeeded'
    UNION
    SELECT id, started_at, ended_at FROM (
        SELECT id, started_at, ended_at, state, task FROM jobs_run
        WHERE owner_id = %(owner_id)s AND id >= %(since)s ORDER BY id DESC LIMIT 500
    ) AS newest WHERE state = 'succeeded' AND task = %(task)s
), spans AS (
    SELECT greatest(0, extract(epoch FROM coalesce(
        (SELECT sum(a.ended_at - a.started_at) FROM jobs_attempt AS a WHERE a.run_id = runs.id),
        ended_at - started_at
    )))::float8 AS seconds
    FROM runs WHERE started_at IS NOT NULL
), middle AS (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds FROM spans
)
SELECT count(*) AS count, avg(least(spans.seconds, 10 * middle.seconds)) AS seconds FROM spans, middle
