-- Runs for due times of jobs, with all that a submit stores of one (jobs/runs/storage.py).
-- Parameters: ids and slots bigint[], side by side: a job and a due time; salt text ('' for the run
--   that was due); submission bigint; queue text and max_attempts int: the settings; lease float
--   (seconds); tasks, policies text[], attempts, priorities int[], deadlines float[]: what tasks
--   declare, side by side.
-- Result: of each run that was not there yet: id, task, queue, owner (slug), priority, is_held; by
--   owner.
-- Keeps true: a run's id is made of job, due time and salt, so that repeating it makes nothing.
--   A policy is the job's, then the task's, then the setting's. A deadline counts from the due time,
--   of a backfill from now. Payloads do not leave the database. Where an owner has calendars, what
--   they say is the caller's part: its runs are held until then.
WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
made AS (
    INSERT INTO jobs_run (
        id, owner_id, job_id, submission_id, target_id, task, queue, state, priority,
        payload, payload_key, labels, max_attempts, policy, options, lock_key,
        created_at, due_at, next_at, deadline_at, queued_at, hint_check_at, history)
    SELECT jobs_scheduled_id(j.id, time.due_at, %(salt)s), j.owner_id, j.id,
        %(submission)s::bigint, j.target_id, j.task,
        CASE WHEN j.queue = '' THEN %(queue)s ELSE j.queue END, first.state,
        coalesce(j.priority, offer.priority, 5), j.payload, j.payload_key, j.labels,
        coalesce(j.max_attempts, offer.max_attempts, %(max_attempts)s),
        coalesce(offer.policy::jsonb, '{}') || CASE
            WHEN num_nonnulls(
                j.backoff_seconds, j.backoff_cap_seconds, j.soft_time_limit_seconds,
                j.time_limit_seconds, nullif(j.retry_on, '{}'), nullif(j.give_up_on, '{}')) = 0
            THEN '{}'
            ELSE jsonb_strip_nulls(jsonb_build_object(
                'backoff_seconds', j.backoff_seconds,
                'backoff_cap_seconds', j.backoff_cap_seconds,
                'retry_on', nullif(j.retry_on, '{}'),
                'give_up_on', nullif(j.give_up_on, '{}'),
                'soft_time_limit_seconds', j.soft_time_limit_seconds,
                'time_limit_seconds', j.time_limit_seconds)) END,
        '{}',
        CASE WHEN j.lock_key <> '' THEN o.slug || ':' || j.lock_key
             WHEN j.overlap <> 'allow' THEN o.slug || ':job:' || j.id ELSE '' END,
        moment.at, time.due_at, time.due_at,
        CASE WHEN %(salt)s = '' THEN time.due_at ELSE moment.at END
            + make_interval(secs => coalesce(j.deadline_seconds, offer.deadline_seconds)),
        moment.at, moment.at + make_interval(secs => %(lease)s),
        jsonb_build_array(jsonb_build_array(first.state, extract(epoch FROM moment.at), ''))
    FROM moment
    CROSS JOIN unnest(%(ids)s::bigint[], %(slots)s::bigint[]) AS due (id, slot)
    CROSS JOIN LATERAL (SELECT to_timestamp(due.slot / 2.0) AS due_at) AS time
    JOIN jobs_job AS j ON j.id = due.id AND j.history_policy = 'full'
    JOIN jobs_owner AS o ON o.id = j.owner_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN o.calendar_version > 0 THEN 'held' ELSE 'queued' END) AS first (state)
    LEFT JOIN unnest(
        %(tasks)s::text[], %(policies)s::text[], %(attempts)s::int[], %(priorities)s::int[],
        %(deadlines)s::float8[]
    ) AS offer (task, policy, max_attempts, priority, deadline_seconds) ON offer.task = j.task
    -- guard: due times: a due time has one row
    ON CONFLICT DO NOTHING
    RETURNING id, owner_id, task, queue, priority, state
)
SELECT made.id, made.task, made.queue, o.slug AS owner, made.priority,
    made.state = 'held' AS is_held
FROM made JOIN jobs_owner AS o ON o.id = made.owner_id
ORDER BY made.owner_id
