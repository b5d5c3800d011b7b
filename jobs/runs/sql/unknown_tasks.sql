-- Count waiting runs whose task no live worker of their queue knows.
-- Parameters: lease seconds; most int: how many runs are read, of those that are blocked for their task
-- and of the others of each state, the oldest first.
-- Result: queue, task, count (of the runs that were read), due_count (how many of them are queued).
-- Queues without a live worker are left out: they lack the worker, not the task.
WITH known AS MATERIALIZED (
    SELECT queue, task FROM jobs_known_tasks(%(lease)s)
), waiting AS (
    (SELECT queue, task, state FROM jobs_run
        WHERE state = 'queued' AND blocked_by = 'task' AND blocked_by <> '' LIMIT %(most)s)
    UNION ALL
    SELECT looked.* FROM unnest(ARRAY['queued', 'retrying', 'held', 'scheduled']) AS s (state)
    CROSS JOIN LATERAL (
        SELECT r.queue, r.task, r.state FROM jobs_run r
        WHERE r.state = s.state AND r.state <> 'succeeded' AND r.blocked_by <> 'task'
        ORDER BY r.id LIMIT %(most)s
    ) AS looked
)
SELECT queue, task, count(*) AS count, count(*) FILTER (WHERE state = 'queued') AS due_count
FROM waiting
WHERE queue IN (SELECT queue FROM known)
  AND (queue, task) NOT IN (SELECT queue, task FROM known)
  AND (queue, '*') NOT IN (SELECT queue, task FROM known)
GROUP BY queue, task
ORDER BY count DESC, queue, task
