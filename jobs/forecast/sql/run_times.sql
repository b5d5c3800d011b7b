-- How long workers were busy with a run of a task, of an owner's newest that have succeeded.
-- Parameters: owner_id bigint, task text, since uuid (the smallest id that counts).
-- Result: one row: count; seconds: the mean for all attempts of a run, each run at most ten times
--   the median; at_once: how many of a submission's newest runs were active at a time; backlogged:
--   the same, of runs that had waited for a slot; retry_share: the part that was retried; failures:
--   the most failures of one run; failed_seconds: how long nine of ten failed attempts took at
--   most, those that run ten times as long as the median among them. Null without runs.
-- Keeps true: a limited number of rows is read, by indexes.
WITH submissions AS (
    SELECT id FROM (
        SELECT id, task FROM jobs_submission WHERE owner_id = %(owner_id)s ORDER BY id DESC LIMIT 200
    ) AS newest WHERE task = %(task)s ORDER BY id DESC LIMIT 5
), jobs AS (
    SELECT id FROM jobs_job WHERE task = %(task)s AND owner_id = %(owner_id)s ORDER BY key LIMIT 20
), runs AS (
    SELECT r.*, s.id AS newest_of FROM submissions AS s CROSS JOIN LATERAL (
        SELECT id, queued_at, started_at, ended_at, attempt_count FROM jobs_run
        WHERE submission_id = s.id AND state = 'succeeded' AND id >= %(since)s
        ORDER BY id DESC LIMIT 100
    ) AS r
    UNION
    SELECT r.*, NULL FROM submissions AS s CROSS JOIN LATERAL (
        SELECT id, queued_at, started_at, ended_at, attempt_count FROM jobs_run
        WHERE submission_id = s.id AND state = 'succeeded' AND id >= %(since)s
        ORDER BY id LIMIT 100
    ) AS r
    UNION
    SELECT r.id, r.queued_at, r.started_at, r.ended_at, r.attempt_count, NULL FROM jobs AS j CROSS JOIN LATERAL (
        SELECT id, queued_at, started_at, ended_at, attempt_count, state FROM jobs_run
        WHERE job_id = j.id AND id >= %(since)s ORDER BY id DESC LIMIT 10
    ) AS r WHERE r.state = 'succeeded'
    UNION
    SELECT id, queued_at, started_at, ended_at, attempt_count, NULL FROM (
        SELECT id, queued_at, started_at, ended_at, attempt_count, state, task FROM jobs_run
        WHERE owner_id = %(owner_id)s AND id >= %(since)s ORDER BY id DESC LIMIT 500
    ) AS newest WHERE state = 'succeeded' AND task = %(task)s
), spans AS (
    SELECT greatest(0, extract(epoch FROM coalesce(
        (SELECT sum(a.ended_at - a.started_at) FROM jobs_attempt AS a WHERE a.run_id = runs.id),
        ended_at - started_at
    )))::float8 AS seconds, started_at, ended_at, newest_of, attempt_count - 1 AS failures,
        started_at - queued_at AS waited
    FROM runs WHERE started_at IS NOT NULL
), middle AS (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds FROM spans
), begun AS (
    -- In a submission that has just begun, the runs that failed have not ended yet.
    SELECT
        (SELECT count(*) FROM (
            SELECT FROM jobs_run WHERE submission_id = newest.id AND state = 'retrying' LIMIT 1000
        ) AS few)::float8 AS retrying,
        (SELECT count(*) FROM (
            SELECT FROM jobs_run WHERE submission_id = newest.id AND state = 'succeeded' LIMIT 1000
        ) AS few) AS done
    FROM (SELECT max(id) AS id FROM submissions) AS newest
), unended AS (
    SELECT r.id, r.state, r.started_at FROM (SELECT max(id) AS id FROM submissions) AS s
    CROSS JOIN LATERAL (
        (SELECT id, state, started_at FROM jobs_run WHERE submission_id = s.id AND state = 'retrying' LIMIT 100)
        UNION ALL
        (SELECT id, state, started_at FROM jobs_run WHERE submission_id = s.id AND state = 'running' LIMIT 100)
    ) AS r
), failed AS (
    SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY seconds) AS seconds FROM (
        SELECT extract(epoch FROM a.ended_at - a.started_at)::float8
        FROM (
            SELECT id FROM runs WHERE attempt_count > 1 UNION SELECT id FROM unended WHERE state = 'retrying'
        ) AS r JOIN jobs_attempt AS a ON a.run_id = r.id
        WHERE a.outcome IN ('retrying', 'failed', 'time limit')
        UNION ALL
        SELECT extract(epoch FROM clock_timestamp() - started_at)::float8 FROM unended, middle
        WHERE state = 'running' AND started_at < clock_timestamp() - make_interval(secs => 10 * middle.seconds)
    ) AS each (seconds)
), filled AS (
    SELECT max(at_once) AS at_once, max(at_once) FILTER (WHERE has_waited) AS backlogged FROM (
        SELECT sum(seconds) / nullif(extract(epoch FROM max(ended_at) - min(started_at)), 0),
            count(*) >= 50 AND percentile_cont(0.5) WITHIN GROUP (ORDER BY waited)
                > greatest(make_interval(secs => avg(seconds)), interval '1 second')
        FROM spans WHERE newest_of IS NOT NULL GROUP BY newest_of
    ) AS each (at_once, has_waited)
)
SELECT count(*) AS count, avg(least(spans.seconds, 10 * middle.seconds)) AS seconds,
    min(filled.at_once)::float8 AS at_once, min(filled.backlogged)::float8 AS backlogged,
    greatest(
        avg((spans.failures > 0)::int)::float8,
        min(begun.retrying / nullif(begun.retrying + begun.done, 0))) AS retry_share,
    max(spans.failures) AS failures, min(failed.seconds) AS failed_seconds
FROM spans, middle, filled, begun, failed
