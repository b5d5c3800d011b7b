-- Audit entries are append-only: UPDATE and DELETE are errors, in a database shell too. Retention may
-- remove those older than 90 days, the shortest AUDIT_DAYS, in a transaction that says so.
CREATE FUNCTION jobs_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('fairshift.removes_history', true) = 'on'
        AND OLD.at < statement_timestamp() - interval '90 days'
    THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'audit entries are append-only';
END $$;

CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON jobs_auditentry
    FOR EACH ROW EXECUTE FUNCTION jobs_audit_is_append_only();

-- The server sets the time and the database role of an audit entry, whatever the INSERT says.
-- The application sets the person: PostgreSQL knows no accounts of Django.
CREATE FUNCTION jobs_audit_by_database() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.at := statement_timestamp();
    -- Not current_user, which SET ROLE changes.
    NEW.database_role := session_user;
    RETURN NEW;
END $$;

CREATE TRIGGER audit_by_database BEFORE INSERT ON jobs_auditentry
    FOR EACH ROW EXECUTE FUNCTION jobs_audit_by_database();

-- TRUNCATE is an error too. An empty table may be truncated: Django's TransactionTestCase truncates
-- every table of a test database.
CREATE FUNCTION jobs_audit_is_not_truncated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM jobs_auditentry) THEN
        RAISE EXCEPTION 'audit entries are append-only' USING HINT =
            'In a test database: ALTER TABLE jobs_auditentry DISABLE TRIGGER audit_not_truncated';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_not_truncated BEFORE TRUNCATE ON jobs_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_audit_is_not_truncated();
