-- Insert jobs that were not there a moment ago.
-- Parameters: rows json, as update.sql takes it.
-- Result: id, owner_id and key of each job that was made; another transaction has made the others.
-- Keeps true: jobs are inserted in the order of owner and key, so two bulks do not deadlock.
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
    n.time_limit_seconds, n.deadline_seconds, n.lock_key, n.history_policy, n.enabled, n.phase,
    n.shard, clock_timestamp(), clock_timestamp(), clock_timestamp()
FROM json_populate_recordset(NULL::jobs_job, %(rows)s::json) AS n
ORDER BY n.owner_id, n.key COLLATE "C"
ON CONFLICT (owner_id, key) DO NOTHING
RETURNING id, owner_id, key
