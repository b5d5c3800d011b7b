-- Block queued runs whose task no live worker knows.
-- Parameters: ids uuid[], tasks text[] (each hint's run and task), lease seconds.
-- Result: a row per hint: id, verdict: 'task' (blocked now), 'busy' (a live worker of its queue knows the
-- task, or another transaction has locked the row), 'gone' (no queued run of this task).
-- Keeps true: rows are locked in id order, locked ones are skipped. A worker that boots meanwhile is not
-- seen: the next sweep unblocks what it knows.
WITH hint AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(tasks)s::text[]) AS h(id, task)
), known AS MATERIALIZED (
    SELECT queue, task FROM jobs_known_tasks(%(lease)s)
), locked AS MATERIALIZED (
    SELECT r.id, r.queue, r.task
    FROM {runs} r JOIN hint h ON h.id = r.id AND h.task = r.task
    WHERE r.id = ANY(%(ids)s) AND r.state = 'queued'
    ORDER BY r.id
    FOR UPDATE OF r SKIP LOCKED
), blocked AS (
    UPDATE {runs} r SET blocked_by = 'task'
    FROM locked l
    WHERE r.id = l.id AND r.id = ANY(%(ids)s)
      -- guard: a run waits for its task only where no live worker knows it
      AND (l.queue, l.task) NOT IN (SELECT queue, task FROM known)
      AND (l.queue, '*') NOT IN (SELECT queue, task FROM known)
    RETURNING r.id
)
SELECT h.id, CASE
    WHEN EXISTS (SELECT FROM blocked b WHERE b.id = h.id) THEN 'task'
    WHEN EXISTS (
        SELECT FROM {runs} r
        WHERE r.id = h.id AND r.id = ANY(%(ids)s) AND r.task = h.task AND r.state = 'queued'
    ) THEN 'busy'
    ELSE 'gone'
END AS verdict
FROM hint h
