-- The barrier of migration 0007 for the new tables. Digests of mails and alarms of jobs have no policy:
-- the role of requests may not read them.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'jobs_webhookendpoint', 'jobs_webhookdelivery', 'jobs_mailsubscription']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY fairshift_tenant ON %I USING'
            ' ((SELECT current_user) <> ''fairshift_tenant'''
            ' OR owner_id = ANY ((SELECT jobs_tenant_owners())::bigint[]))', name);
    END LOOP;
END $$;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'fairshift_tenant') THEN
        PERFORM jobs_grant_tenant();
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        NULL;
END $$;
