-- Make one job, and audit it.
-- Parameters: row json: an object by the names of columns, payload as bytea in hex; actor_id,
--   token_id bigint, actor_name text (who acts; all null: no audit entry).
-- Result: one row: id, slug (of the owner), phase, shard, effective_from, created_at, changed_at.
--   No row, and nothing stored, if the owner has a job of this key, or does not exist.
-- Keeps true: phase and shard are those of jobs.schedules.place for the next number of the interval.
WITH given AS MATERIALIZED (
    SELECT n.*, o.slug,
        CASE WHEN n.schedule = 'interval' THEN n.interval_minutes WHEN n.smooth THEN 1 END AS minutes
    FROM json_populate_record(NULL::jobs_job, %(row)s::json) AS n JOIN jobs_owner o ON o.id = n.owner_id
), placed AS MATERIALIZED (
    SELECT *, CASE WHEN minutes IS NOT NULL THEN
        -- The half-second of the interval: the Weyl sequence of the golden ratio, in whole numbers.
        div(mod(nextval(('jobs_phase_' || minutes %% 64)::regclass) * 11400714819323198485::numeric,
                18446744073709551616::numeric) * minutes * 120, 18446744073709551616::numeric)::bigint
    END AS slot
    FROM given
), made AS (
    INSERT INTO jobs_job (
        owner_id, key, name, task, queue, payload, payload_key, target_id, labels, schedule,
        interval_minutes, interval_seconds, cron, zone, once_at, start_at, end_at, smooth, misfire,
        misfire_cap, misfire_deadline_seconds, overlap, priority, max_attempts, backoff_seconds,
        backoff_cap_seconds, retry_on, give_up_on, soft_time_limit_seconds, time_limit_seconds,
        deadline_seconds, lock_key, history_policy, enabled, phase, shard, effective_from,
        created_at, changed_at)
    SELECT
        n.owner_id, n.key, n.name, n.task, n.queue, n.payload, n.payload_key,
        n.target_id, n.labels, n.schedule, n.interval_minutes, n.interval_seconds, n.cron, n.zone,
        n.once_at, n.start_at, n.end_at, n.smooth, n.misfire, n.misfire_cap,
        n.misfire_deadline_seconds, n.overlap, n.priority, n.max_attempts, n.backoff_seconds,
        n.backoff_cap_seconds, n.retry_on, n.give_up_on, n.soft_time_limit_seconds,
        n.time_limit_seconds, n.deadline_seconds, n.lock_key, n.history_policy, n.enabled,
        n.slot / 120, n.slot %% 120, clock_timestamp(), clock_timestamp(), clock_timestamp()
    FROM placed AS n
    ON CONFLICT (owner_id, key) DO NOTHING
    RETURNING id, owner_id, phase, shard, effective_from, created_at, changed_at
), audited AS (
    INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, %(actor_name)s::text, 'add', 'job', id::text,
        owner_id, '', '{}'
    FROM made WHERE %(actor_name)s::text IS NOT NULL
)
SELECT made.id, given.slug, made.phase, made.shard, made.effective_from, made.created_at,
    made.changed_at
FROM made CROSS JOIN given
