-- The audit only grows: an UPDATE or DELETE of an entry is an error, also for an operator
-- with a database shell. For TRUNCATE, see 0010_audit_by_database.sql.
CREATE FUNCTION jobs_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are append-only';
END $$;

CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON jobs_auditentry
    FOR EACH ROW EXECUTE FUNCTION jobs_audit_is_append_only();
