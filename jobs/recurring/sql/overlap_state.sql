-- Which due times are done, and which runs of their jobs are open.
-- Parameters: job_ids and slots bigint[], side by side: a job and a due time.
-- Result: for each due time with a run or a record of a miss: kind 'done', job_id, slot; for each
--   open run: kind 'waiting' or 'active', job_id, run_id, in the order of ids.
-- Keeps true: runs of a backfill do not count; the job's lock key keeps them apart. All runs of these
--   jobs have a lock key, and the index of open runs with one is small.
WITH due AS (
    SELECT job_id, slot, to_timestamp(slot / 2.0) AS due_at
    FROM unnest(%(job_ids)s::bigint[], %(slots)s::bigint[]) AS d (job_id, slot)
)
SELECT 'done' AS kind, due.job_id, due.slot, NULL::uuid AS run_id
FROM due
WHERE EXISTS (SELECT FROM jobs_run AS r WHERE r.id = jobs_scheduled_id(due.job_id, due.due_at))
   OR EXISTS (SELECT FROM jobs_missed AS m
              WHERE m.job_id = due.job_id AND due.due_at BETWEEN m.first_at AND m.last_at)
UNION ALL
(SELECT CASE WHEN r.state IN ('admitted', 'running', 'cancelling') THEN 'active' ELSE 'waiting' END,
    r.job_id, NULL, r.id
 FROM jobs_run AS r
 WHERE r.job_id = ANY(%(job_ids)s) AND r.lock_key <> '' AND r.submission_id IS NULL
   AND r.state NOT IN ('succeeded', 'failed', 'cancelled', 'expired')
 ORDER BY r.id)
