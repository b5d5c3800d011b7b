-- What the web process, the workers of jobs and beat may do, as in SECURITY.md. The owner of the
-- tables runs this after each migrate.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fairshift_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO fairshift_app;
-- The partitions of the days to come.
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO fairshift_app;
REVOKE UPDATE, DELETE ON jobs_auditentry FROM fairshift_app;
