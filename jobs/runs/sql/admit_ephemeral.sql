-- Say which hints of runs without history may start now. Nothing is written.
-- Parameters: keys text[], jobs bigint[], tasks text[] (each hint's job and task), dues timestamptz[]
-- (due times), are_timed bool[] (whether the deadline applies); the task's own deadlines, limits and
-- soft_limits float8[] (seconds or null); worker uuid, lease seconds.
-- Result: a row per hint: key, verdict ('', 'busy', 'gone', 'window'), and of its job what a worker
-- needs; start_within, soft_close and hard_close as in admit.sql.
-- Keeps true: the job's current row decides: it exists, without history, of this task, enabled, not
-- paused; a deadline counts from the due time, by this clock; a worker that was frozen past its lease
-- starts nothing before its next heartbeat. One moment decides. A run outside its windows has no row to
-- be held: it is dropped, and the caller records it.
WITH hint AS (
    SELECT * FROM unnest(
        %(keys)s::text[], %(jobs)s::bigint[], %(tasks)s::text[], %(dues)s::timestamptz[],
        %(are_timed)s::bool[], %(deadlines)s::float8[], %(limits)s::float8[],
        %(soft_limits)s::float8[]
    ) AS h(key, job_id, task, due_at, is_timed, deadline, time_limit, soft_limit)
), now AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), node AS (
    SELECT id FROM jobs_worker
    WHERE id = %(worker)s AND stopped_at IS NULL
      AND heartbeat_at > clock_timestamp() - make_interval(secs => %(lease)s)
)
SELECT h.key,
    CASE
        -- guard: without history: a paused job has no run
        WHEN j.id IS NULL OR NOT j.enabled OR j.paused_until > now.at THEN 'gone'
        WHEN h.is_timed AND now.at >=
            h.due_at + make_interval(secs => coalesce(j.deadline_seconds, h.deadline)) THEN 'gone'
        -- guard: without history: a worker that was frozen past its lease starts nothing
        WHEN NOT EXISTS (SELECT FROM node) THEN 'busy'
        -- guard: without history: a paused owner's hint waits
        WHEN o.paused_at IS NOT NULL
         AND (o.paused_until IS NULL OR o.paused_until > now.at) THEN 'busy'
        -- guard: without history, too, nothing starts outside its windows
        WHEN NOT coalesce(now.at <= gate.until - needed.span, applying.ids IS NULL) THEN 'window'
        ELSE ''
    END AS verdict,
    extract(epoch FROM nullif(gate.until, 'infinity') - needed.span - now.at)::float8 AS start_within,
    extract(epoch FROM gate.soft_at - now.at)::float8 AS soft_close,
    extract(epoch FROM gate.hard_at - now.at)::float8 AS hard_close,
    o.slug AS owner, j.queue, j.priority, j.lock_key, j.labels, j.payload, j.payload_key,
    j.max_attempts, j.backoff_seconds, j.backoff_cap_seconds, j.retry_on, j.give_up_on,
    j.soft_time_limit_seconds, j.time_limit_seconds
FROM hint h
CROSS JOIN now
-- guard: without history: a job with a history needs a row
LEFT JOIN jobs_job j ON j.id = h.job_id AND j.task = h.task AND j.history_policy = 'none'
LEFT JOIN jobs_owner o ON o.id = j.owner_id
CROSS JOIN LATERAL (SELECT
    CASE WHEN o.calendar_version > 0 THEN jobs_calendars(j.owner_id, j.id, j.target_id) END AS ids
) AS applying
CROSS JOIN LATERAL jobs_gate(applying.ids, now.at) AS gate
CROSS JOIN LATERAL (SELECT make_interval(secs => coalesce(
    j.time_limit_seconds, h.time_limit, j.soft_time_limit_seconds, h.soft_limit, 0)) AS span) AS needed
