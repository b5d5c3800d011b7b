-- An expression, for other statements: whether the job `j` differs from the row `n` in a column that
-- callers set.
(j.name, j.task, j.queue, j.payload, j.payload_key, j.target_id, j.labels, j.schedule,
 j.interval_minutes, j.interval_seconds, j.cron, j.zone, j.once_at, j.start_at, j.end_at, j.smooth,
 j.misfire, j.misfire_cap, j.misfire_deadline_seconds, j.overlap, j.priority, j.max_attempts,
 j.backoff_seconds, j.backoff_cap_seconds, j.retry_on, j.give_up_on, j.soft_time_limit_seconds,
 j.time_limit_seconds, j.deadline_seconds, j.lock_key, j.history_policy, j.enabled)
IS DISTINCT FROM
(n.name, n.task, n.queue, n.payload, n.payload_key, n.target_id, n.labels, n.schedule,
 n.interval_minutes, n.interval_seconds, n.cron, n.zone, n.once_at, n.start_at, n.end_at, n.smooth,
 n.misfire, n.misfire_cap, n.misfire_deadline_seconds, n.overlap, n.priority, n.max_attempts,
 n.backoff_seconds, n.backoff_cap_seconds, n.retry_on, n.give_up_on, n.soft_time_limit_seconds,
 n.time_limit_seconds, n.deadline_seconds, n.lock_key, n.history_policy, n.enabled)
