-- The waiting runs of a submission, grouped by what decides about their start.
-- Parameters: submission bigint; firsts uuid[]: the first ids of its waves that are not released, in order.
-- Result: wave (0: released, else the place in firsts, from 1), calendars (ids, in order; empty when overridden), needed (interval), priority, count,
--   names (of at most ten targets), due_at (the earliest), deadline_at (the latest; null when a run
--   has none), retried_at (for retries, which are groups of their own: the latest start).
SELECT wave, calendars, needed, priority, sum(count)::int AS count,
    (array_agg(name) FILTER (WHERE name IS NOT NULL))[1:10] AS names, min(due_at) AS due_at,
    CASE WHEN bool_and(deadline_at IS NOT NULL) THEN max(deadline_at) END AS deadline_at,
    max(retried_at) AS retried_at
FROM (
    SELECT width_bucket(r.id, %(firsts)s::uuid[]) AS wave, t.name, jobs_needed(r.policy) AS needed, r.priority,
        CASE WHEN o.calendar_version = 0 THEN '{}'::bigint[]
            ELSE jobs_calendars(r.owner_id, r.job_id, r.target_id, r.window_policy)
            END AS calendars,
        count(*) AS count, min(r.due_at) AS due_at, max(r.deadline_at) AS deadline_at,
        max(r.next_at) FILTER (WHERE r.state = 'retrying') AS retried_at
    FROM jobs_run AS r JOIN jobs_owner AS o ON o.id = r.owner_id LEFT JOIN jobs_target AS t ON t.id = r.target_id
    WHERE r.submission_id = %(submission)s
        AND r.state IN ('scheduled', 'held', 'queued', 'retrying')
    GROUP BY wave, r.owner_id, r.job_id, r.target_id, t.name, needed, r.priority, r.window_policy,
        o.calendar_version, r.state = 'retrying'
) AS alike
GROUP BY wave, calendars, needed, priority, retried_at IS NULL
