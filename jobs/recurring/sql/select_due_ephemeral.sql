-- Due times of jobs without history, with what their hints hold.
-- Parameters: ids and slots bigint[], side by side: a job and a due time.
-- Result: the fields of `Due` (due.py).
-- Keeps true: reads only.
SELECT j.id, due.slot, j.history_policy, j.overlap, o.slug, j.task, j.queue, j.priority, j.lock_key
FROM unnest(%(ids)s::bigint[], %(slots)s::bigint[]) AS due (id, slot)
JOIN jobs_job AS j ON j.id = due.id AND j.history_policy = 'none'
JOIN jobs_owner AS o ON o.id = j.owner_id
