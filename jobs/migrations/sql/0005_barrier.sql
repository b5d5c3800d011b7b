-- Row-level security for requests: for the role fairshift_tenant, rows of owners that are not in
-- the setting fairshift.owner_ids do not exist. For all other roles nothing changes.
-- jobs/core/barrier.py sets both; docs/decisions/0028 has the reasons.

CREATE FUNCTION jobs_tenant_owners() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(current_setting('fairshift.owner_ids', true), ''), '{}')::bigint[]
$$;

-- Create the policies. Tables of all owners, such as totals, have none: the role may not read them. The subqueries are evaluated once for each statement, not for each row.
DO $$
DECLARE
    owned text := 'owner_id = ANY ((SELECT jobs_tenant_owners())::bigint[])';
    conditions jsonb := jsonb_build_object(
        'jobs_owner', 'id = ANY ((SELECT jobs_tenant_owners())::bigint[])',
        'jobs_membership', owned,
        'jobs_apitoken', owned,
        'jobs_auditentry', owned,
        'jobs_target', owned,
        'jobs_targetgroup', owned,
        'jobs_job', owned,
        'jobs_missed', owned,
        'jobs_submission', owned,
        'jobs_rollout', owned,
        'jobs_run', owned,
        'jobs_rollup', owned,
        'jobs_webhookendpoint', owned,
        'jobs_webhookdelivery', owned,
        'jobs_mailsubscription', owned,
        -- Rows without an owner of their own are seen with the row that they belong to.
        'jobs_attempt', 'EXISTS (SELECT FROM jobs_run r WHERE r.id = run_id)',
        'jobs_backfill', 'EXISTS (SELECT FROM jobs_job j WHERE j.id = job_id)',
        'jobs_targetgroup_targets', 'EXISTS (SELECT FROM jobs_targetgroup g WHERE g.id = targetgroup_id)',
        'jobs_attachment', owned
            || ' OR EXISTS (SELECT FROM jobs_job j WHERE j.id = job_id)'
            || ' OR EXISTS (SELECT FROM jobs_target t WHERE t.id = target_id)'
            || ' OR EXISTS (SELECT FROM jobs_targetgroup g WHERE g.id = group_id)',
        -- A shared calendar has no owner. It is seen where it applies.
        'jobs_calendar', owned
            || ' OR owner_id IS NULL AND EXISTS'
            || ' (SELECT FROM jobs_attachment a WHERE a.calendar_id = jobs_calendar.id)',
        'jobs_window', 'EXISTS (SELECT FROM jobs_calendar c WHERE c.id = calendar_id)',
        'jobs_opening', 'EXISTS (SELECT FROM jobs_calendar c WHERE c.id = calendar_id)',
        'jobs_windowdecision', 'EXISTS (SELECT FROM jobs_window w WHERE w.id = window_id)'
    );
    named record;
BEGIN
    FOR named IN SELECT * FROM jsonb_each_text(conditions) AS each (name, condition) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named.name);
        EXECUTE format(
            'CREATE POLICY fairshift_tenant ON %I USING'
            ' ((SELECT current_user) <> ''fairshift_tenant'' OR %s)',
            named.name, named.condition);
    END LOOP;
END $$;

-- Let the role read the tables that have the policy, and nothing else. An administrator who creates
-- the role later calls this as the owner of the tables.
CREATE FUNCTION jobs_grant_tenant() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO fairshift_tenant', current_schema());
    FOR name IN SELECT tablename FROM pg_policies
        WHERE policyname = 'fairshift_tenant' AND schemaname = current_schema()
    LOOP
        EXECUTE format('GRANT SELECT ON %I TO fairshift_tenant', name);
    END LOOP;
END $$;

-- Create the role if this user may; else `check --deploy` says how. Roles are shared by all
-- databases of a server, and two may be migrated at the same time.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fairshift_tenant') THEN
        CREATE ROLE fairshift_tenant NOLOGIN;
        -- A superuser has every role. Another user that creates one may give it to itself.
        IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            EXECUTE format('GRANT fairshift_tenant TO %I', current_user);
        END IF;
    END IF;
    PERFORM jobs_grant_tenant();
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        PERFORM jobs_grant_tenant();
    WHEN insufficient_privilege THEN
        NULL;
END $$;
