-- What of a submission still waits, those together that have all in common.
-- Parameters: submission bigint.
-- Result: calendars (ids, in order), needed (interval), priority, count, names (of at most ten targets),
--   deadline_at (the latest).
SELECT jobs_calendars(owner_id, job_id, target_id) AS calendars, needed, priority, sum(count)::int AS count,
    (array_agg(name) FILTER (WHERE name IS NOT NULL))[1:10] AS names, max(deadline_at) AS deadline_at
FROM (
    SELECT r.owner_id, r.job_id, r.target_id, t.name, jobs_needed(r.policy) AS needed, r.priority,
        count(*) AS count, max(r.deadline_at) AS deadline_at
    FROM jobs_run AS r LEFT JOIN jobs_target AS t ON t.id = r.target_id
    WHERE r.submission_id = %(submission)s AND r.window_policy <> 'overridden'
        AND r.state IN ('scheduled', 'held', 'queued', 'retrying')
    GROUP BY r.owner_id, r.job_id, r.target_id, t.name, needed, r.priority
) AS alike
GROUP BY calendars, needed, priority
