-- The columns that callers set, for other statements.
name, task, queue, payload, payload_key, target_id, labels, schedule, interval_minutes,
interval_seconds, cron, zone, once_at, start_at, end_at, smooth, misfire, misfire_cap,
misfire_deadline_seconds, overlap, priority, max_attempts, backoff_seconds, backoff_cap_seconds,
retry_on, give_up_on, soft_time_limit_seconds, time_limit_seconds, deadline_seconds, lock_key,
history_policy, enabled
