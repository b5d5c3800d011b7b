-- The logs of attempts: chunks of lines, partitioned as runs and attempts are.
SET LOCAL lock_timeout = '5s';

CREATE TABLE jobs_log (
    run_id     uuid NOT NULL,
    token      integer NOT NULL,
    first_line integer NOT NULL,
    line_count integer NOT NULL,
    first_at   timestamptz NOT NULL,
    key        smallint NOT NULL DEFAULT 0,
    data       bytea NOT NULL,
    PRIMARY KEY (run_id, token, first_line)
) PARTITION BY RANGE (run_id);

CREATE TABLE jobs_log_default PARTITION OF jobs_log DEFAULT;

-- For each partition of attempts one of the same days:
DO $$
DECLARE
    partition record;
BEGIN
    FOR partition IN
        SELECT replace(c.relname, 'jobs_attempt', 'jobs_log') AS name,
            pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'jobs_attempt'::regclass AND c.relname <> 'jobs_attempt_default'
    LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF jobs_log %s', partition.name, partition.bounds);
    END LOOP;
END $$;

-- Behind the barrier, they are seen with their run:
ALTER TABLE jobs_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY fairshift_tenant ON jobs_log USING (
    (SELECT current_user) <> 'fairshift_tenant'
    OR EXISTS (SELECT FROM jobs_run r WHERE r.id = run_id));
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'fairshift_tenant') THEN
        PERFORM jobs_grant_tenant();
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        NULL;
END $$;
