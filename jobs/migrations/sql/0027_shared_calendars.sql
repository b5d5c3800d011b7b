-- The calendars that count for a run by its window policy: none when it is overridden; 'shared' leaves
-- those without an owner, on which its operator could not decide; else all that apply.
CREATE FUNCTION jobs_calendars(of_owner bigint, of_job bigint, of_target bigint, policy text)
RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM (
        SELECT calendar_id FROM jobs_attachment WHERE owner_id = of_owner
        UNION SELECT calendar_id FROM jobs_attachment WHERE job_id = of_job
        UNION SELECT calendar_id FROM jobs_attachment WHERE target_id = of_target
        UNION SELECT a.calendar_id
        FROM jobs_targetgroup_targets AS g
        JOIN jobs_attachment AS a ON a.group_id = g.targetgroup_id
        WHERE g.target_id = of_target
    ) AS applying (id)
    WHERE policy <> 'overridden' AND (
        policy <> 'shared'
        OR EXISTS (SELECT FROM jobs_calendar AS c WHERE c.id = applying.id AND c.owner_id IS NULL)
    )
$$;

-- All that apply, as for a run without a policy. PostgreSQL expands this in the calling statement.
CREATE OR REPLACE FUNCTION jobs_calendars(of_owner bigint, of_job bigint, of_target bigint)
RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT jobs_calendars(of_owner, of_job, of_target, '')
$$;
