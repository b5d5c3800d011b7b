CREATE OR REPLACE FUNCTION jobs_calendars(of_owner bigint, of_job bigint, of_target bigint)
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
$$;
DROP FUNCTION jobs_calendars(bigint, bigint, bigint, text);
