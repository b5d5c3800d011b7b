-- What retention needs: a note of each row that changes while its partition is replaced.

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
