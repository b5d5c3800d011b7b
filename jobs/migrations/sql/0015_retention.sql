-- What retention needs: a note of each row that changes while its partition is replaced, and leave to
-- remove old audit entries.

-- Runs of partitions that are being replaced, written since the copy began.
CREATE TABLE jobs_touched (run_id uuid NOT NULL);

-- AFTER INSERT OR UPDATE OR DELETE of a partition; its argument is the column with the run's id. Other
-- database users write runs, too: the note is written as the owner of the table.
CREATE FUNCTION jobs_note_touched() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO jobs_touched (run_id)
    VALUES (((CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END)
        ->> TG_ARGV[0])::uuid);
    RETURN NULL;
END $$;

-- Audit entries stay append-only, but for entries that are older than 90 days, the shortest AUDIT_DAYS,
-- in a transaction that says that it removes old history. An UPDATE is always an error.
CREATE OR REPLACE FUNCTION jobs_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('fairshift.removes_history', true) = 'on'
        AND OLD.at < statement_timestamp() - interval '90 days'
    THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'audit entries are append-only';
END $$;
