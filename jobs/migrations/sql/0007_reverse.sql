-- Remove the policies. The role stays: other databases of the server may use it.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_policies
        WHERE policyname = 'fairshift_tenant' AND schemaname = current_schema()
    LOOP
        EXECUTE format('DROP POLICY fairshift_tenant ON %I', name);
        EXECUTE format('ALTER TABLE %I DISABLE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;

DROP FUNCTION jobs_grant_tenant();
DROP FUNCTION jobs_tenant_owners();
