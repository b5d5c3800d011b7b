-- What the hints of due times hold, of jobs without history.
-- Parameters: ids and slots bigint[], side by side: a job and a due time; salt text ('' for the run
--   that was due); submission bigint; queue text: the setting; tasks text[] and priorities int[]:
--   what tasks declare, side by side.
-- Result: run_id, task, queue, owner (slug), submission, attempt, priority, token, job, lock: the
--   fields of a Hint, in their order; by owner.
-- Keeps true: reads only.
SELECT jobs_scheduled_id(j.id, to_timestamp(due.slot / 2.0), %(salt)s)::text, j.task,
    CASE WHEN j.queue = '' THEN %(queue)s ELSE j.queue END, o.slug, %(submission)s::bigint, 1,
    coalesce(j.priority, offer.priority, 5), 1, j.id, j.lock_key
FROM unnest(%(ids)s::bigint[], %(slots)s::bigint[]) AS due (id, slot)
JOIN jobs_job AS j ON j.id = due.id AND j.history_policy = 'none'
JOIN jobs_owner AS o ON o.id = j.owner_id
LEFT JOIN unnest(%(tasks)s::text[], %(priorities)s::int[]) AS offer (task, priority)
    ON offer.task = j.task
ORDER BY j.owner_id
