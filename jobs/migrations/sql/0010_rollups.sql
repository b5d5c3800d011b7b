-- What the rollups need beside their table: when an attempt was written, and two indexes.

-- Only for rows to come: rows of before this migration keep null, and are not counted.
ALTER TABLE jobs_attempt ALTER COLUMN recorded_at SET DEFAULT clock_timestamp();
-- Attempts of one minute. Values rise with the pages of the table, so their ranges suffice, and an
-- insert writes nothing. Autovacuum summarizes a range of pages when it is full:
CREATE INDEX attempt_recorded ON jobs_attempt USING brin (recorded_at)
    WITH (pages_per_range = 64, autosummarize = on);
-- Runs that ended in one minute, which are few: those that succeeded always have an attempt.
CREATE INDEX run_ended ON jobs_run (ended_at) WHERE state IN ('failed', 'cancelled', 'expired');

-- The barrier of migration 0007 for the rollups: requests see those of their owners. Totals are of all
-- owners; without a policy, the role of requests may not read them.
ALTER TABLE jobs_rollup ENABLE ROW LEVEL SECURITY;
CREATE POLICY fairshift_tenant ON jobs_rollup USING (
    (SELECT current_user) <> 'fairshift_tenant'
    OR owner_id = ANY ((SELECT jobs_tenant_owners())::bigint[]));
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'fairshift_tenant') THEN
        PERFORM jobs_grant_tenant();
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        NULL;
END $$;
