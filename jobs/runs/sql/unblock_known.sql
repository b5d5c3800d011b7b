-- Unblock runs whose task a live worker of their queue knows now.
-- Parameters: lease seconds, most int.
-- Result: id of each unblocked run, the oldest first, for the outbox.
-- Keeps true: admission decides all else. Locked rows are left for the next call.
WITH known AS MATERIALIZED (
    SELECT queue, task FROM jobs_known_tasks(%(lease)s)
), locked AS MATERIALIZED (
    SELECT r.id FROM jobs_run r
    WHERE r.state = 'queued' AND r.blocked_by = 'task' AND r.blocked_by <> ''
      -- guard: the sweep frees runs of a task that a worker of their queue knows, and no others
      AND ((r.queue, r.task) IN (SELECT queue, task FROM known)
           OR (r.queue, '*') IN (SELECT queue, task FROM known))
    ORDER BY r.id
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_run r SET
    blocked_by = '',
    hint_check_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM locked l
WHERE r.id = l.id
RETURNING r.id
