-- Decisions about calendars, for admission and for the code that predicts admission.

-- Return the ids of the calendars that count for a run of an owner, a job and a target, in order. Job
-- and target may be null. By the run's window policy these are: none when it is overridden; 'shared'
-- leaves those without an owner, on which its operator could not decide; else all that apply.
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
CREATE FUNCTION jobs_calendars(of_owner bigint, of_job bigint, of_target bigint)
RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT jobs_calendars(of_owner, of_job, of_target, '')
$$;

-- Return three times for a set of calendars at a moment. until: all are open before it, less the
-- largest cut-off (null when one is closed, infinity without calendars). soft_at and hard_at: when the
-- first calendar closes whose end is a soft, or a hard, time limit (null for none).
CREATE FUNCTION jobs_gate(
    calendars bigint[], at timestamptz,
    OUT until timestamptz, OUT soft_at timestamptz, OUT hard_at timestamptz
) LANGUAGE sql STABLE STRICT AS $$
    SELECT
        CASE WHEN count(*) = 0 THEN 'infinity'
             WHEN count(open.closes_at) = count(*)
             THEN min(open.closes_at) - make_interval(secs => max(c.cut_off_seconds)) END,
        min(open.closes_at) FILTER (WHERE c."end" = 'soft'),
        min(open.closes_at) FILTER (WHERE c."end" = 'hard')
    FROM jobs_calendar AS c
    LEFT JOIN LATERAL (
        SELECT o.closes_at FROM jobs_opening AS o
        WHERE o.calendar_id = c.id AND o.opens_at <= at
        ORDER BY o.opens_at DESC LIMIT 1
    ) AS open ON open.closes_at > at
    WHERE c.id = ANY(calendars)
$$;

-- Return when the first calendar closes that stops active runs; the moment itself when one of these is
-- closed already; null when no calendar stops runs.
CREATE FUNCTION jobs_ends(calendars bigint[], at timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT min(coalesce(open.closes_at, at))
    FROM jobs_calendar AS c
    LEFT JOIN LATERAL (
        SELECT o.closes_at FROM jobs_opening AS o
        WHERE o.calendar_id = c.id AND o.opens_at <= at
        ORDER BY o.opens_at DESC LIMIT 1
    ) AS open ON open.closes_at > at
    WHERE c.id = ANY(calendars) AND c."end" <> 'let run'
$$;

-- Return how long an opening an attempt needs: the time limit in its run's policy. What raw SQL has
-- written in place of a number is no limit: it must not stop statements that read many policies.
CREATE FUNCTION jobs_needed(policy jsonb) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT make_interval(secs => coalesce(
        (jsonb_path_query_first(policy, '$.time_limit_seconds
            ? (@.type() == "number" && @ >= 0 && @ <= 1000000000)'))::float8,
        (jsonb_path_query_first(policy, '$.soft_time_limit_seconds
            ? (@.type() == "number" && @ >= 0 && @ <= 1000000000)'))::float8, 0))
$$;
