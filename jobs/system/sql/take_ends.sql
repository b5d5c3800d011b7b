-- Take the oldest ends that a listener has not taken, and delete them.
-- Parameters: listener text, most int.
-- Result: in the order in which they were recorded: run_id, owner_id, submission_id, state, ended_at,
-- recorded_at; owner (slug), task, job_id, error_type, attempt, labels: null if the row is gone.
-- Keeps true: ends that another transaction is taking are left to it; a rollback gives them back.
WITH taken AS (
    DELETE FROM jobs_end WHERE id = ANY(ARRAY(
        SELECT id FROM jobs_end WHERE listener = %(listener)s
        ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED))
    RETURNING *
)
SELECT t.run_id, t.owner_id, t.submission_id, t.state, t.ended_at, t.recorded_at,
    o.slug AS owner, r.task, r.job_id, r.error_type, r.attempt, r.labels
FROM taken t
LEFT JOIN jobs_owner o ON o.id = t.owner_id
-- OFFSET 0 keeps the planner from starting with the runs when it takes their table for small.
LEFT JOIN LATERAL (
    SELECT task, job_id, error_type, earlier_attempts::bigint + attempt_count AS attempt, labels
    FROM jobs_run WHERE id = t.run_id OFFSET 0
) AS r ON true
ORDER BY t.id
