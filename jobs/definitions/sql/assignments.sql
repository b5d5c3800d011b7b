-- The columns that callers set, each taken from the row `n`, for other statements.
name = n.name, task = n.task, queue = n.queue, payload = n.payload, payload_key = n.payload_key,
target_id = n.target_id, labels = n.labels, schedule = n.schedule,
interval_minutes = n.interval_minutes, interval_seconds = n.interval_seconds, cron = n.cron,
zone = n.zone, once_at = n.once_at, start_at = n.start_at, end_at = n.end_at, smooth = n.smooth,
misfire = n.misfire, misfire_cap = n.misfire_cap,
misfire_deadline_seconds = n.misfire_deadline_seconds, overlap = n.overlap, priority = n.priority,
max_attempts = n.max_attempts, backoff_seconds = n.backoff_seconds,
backoff_cap_seconds = n.backoff_cap_seconds, retry_on = n.retry_on, give_up_on = n.give_up_on,
soft_time_limit_seconds = n.soft_time_limit_seconds, time_limit_seconds = n.time_limit_seconds,
deadline_seconds = n.deadline_seconds, lock_key = n.lock_key, history_policy = n.history_policy,
enabled = n.enabled
