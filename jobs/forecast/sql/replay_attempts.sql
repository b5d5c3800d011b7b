-- Read the attempts of a queue that were recorded in a span, of one run in `each`.
-- Parameters: start and end timestamptz (end not included); queue text; each integer.
-- Result: a row for each attempt, in the order of run and attempt: run_id, owner_id, task, priority,
-- submission_id, job_id, target_id, lock_key, window_policy, needed (seconds); times in microseconds
-- since start: eligible (due or submitted), start_by, queued, admitted, started, ended, recorded;
-- worker_id.
-- Cost: attempts of the span by attempt_recorded, and the run of each by its id.
SELECT a.run_id, r.owner_id, r.task, r.priority, r.submission_id, r.job_id, r.target_id, r.lock_key,
    r.window_policy, extract(epoch FROM jobs_needed(r.policy))::float8 AS needed,
    us.eligible, us.start_by, us.queued,
    us.started, us.ended, us.recorded, a.worker_id
FROM jobs_attempt AS a
-- OFFSET 0 keeps the planner from starting with the runs when it takes their table for small.
CROSS JOIN LATERAL (SELECT * FROM jobs_run WHERE id = a.run_id OFFSET 0) AS r
CROSS JOIN LATERAL (SELECT
    (extract(epoch FROM greatest(r.due_at, r.created_at) - %(start)s) * 1000000)::bigint AS eligible,
    (extract(epoch FROM r.deadline_at - %(start)s) * 1000000)::bigint AS start_by,
    (extract(epoch FROM a.queued_at - %(start)s) * 1000000)::bigint AS queued,
    (extract(epoch FROM a.started_at - %(start)s) * 1000000)::bigint AS started,
    (extract(epoch FROM a.ended_at - %(start)s) * 1000000)::bigint AS ended,
    (extract(epoch FROM a.recorded_at - %(start)s) * 1000000)::bigint AS recorded
) AS us
WHERE a.recorded_at >= %(start)s AND a.recorded_at < %(end)s AND a.run_state NOT IN ('', 'queued')
    AND a.started_at IS NOT NULL AND a.queued_at IS NOT NULL AND r.queue = %(queue)s
    AND (%(each)s = 1 OR mod(hashtextextended(a.run_id::text, 0), %(each)s) = 0)
ORDER BY a.run_id, a.token
