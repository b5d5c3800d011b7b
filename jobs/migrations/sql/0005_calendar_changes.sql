-- Record every change of a calendar, by the verbs of jobs/calendars/changes.py, the ORM with its
-- cascades and querysets, or raw SQL. The next promotion makes the openings and gates the runs.
-- Keeps true: a calendar whose windows or decisions changed has no openings, so that no run starts,
-- until this transaction or a promotion makes them again. An owner gets a new calendar_version when a
-- calendar begins or ceases to apply to the owner, its jobs, targets or groups.
-- The column is_stale is no field of the model, so that a save() of an older object cannot reset it.
-- Cost: one lookup by primary key for each changed row.
ALTER TABLE jobs_calendar ADD COLUMN is_stale boolean NOT NULL DEFAULT false;
CREATE INDEX jobs_calendar_stale ON jobs_calendar (id) WHERE is_stale;

CREATE FUNCTION jobs_mark_stale(of_calendar bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE jobs_calendar SET is_stale = true WHERE id = of_calendar AND NOT is_stale;
    DELETE FROM jobs_opening WHERE calendar_id = of_calendar;
$$;

CREATE FUNCTION jobs_window_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM jobs_mark_stale(OLD.calendar_id);
    END IF;
    IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND NEW.calendar_id <> OLD.calendar_id THEN
        PERFORM jobs_mark_stale(NEW.calendar_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER window_came_or_went AFTER INSERT OR DELETE ON jobs_window
    FOR EACH ROW EXECUTE FUNCTION jobs_window_changed();
-- Without the columns of the requester: the deletion of a user changes these in every window.
CREATE TRIGGER window_changed AFTER UPDATE OF calendar_id, effect, starts, duration_seconds, zone,
    rule, excluded, added, valid_from, valid_until, revision ON jobs_window
    FOR EACH ROW EXECUTE FUNCTION jobs_window_changed();

CREATE FUNCTION jobs_decision_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobs_mark_stale(calendar_id) FROM jobs_window
    WHERE id = CASE TG_OP WHEN 'DELETE' THEN OLD.window_id ELSE NEW.window_id END;
    RETURN NULL;
END $$;
CREATE TRIGGER decision_changed AFTER INSERT OR UPDATE OR DELETE ON jobs_windowdecision
    FOR EACH ROW EXECUTE FUNCTION jobs_decision_changed();

CREATE FUNCTION jobs_calendar_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.is_stale := true;
    DELETE FROM jobs_opening WHERE calendar_id = NEW.id;
    RETURN NEW;
END $$;
CREATE TRIGGER calendar_changed BEFORE UPDATE ON jobs_calendar
    FOR EACH ROW
    WHEN ((OLD.cut_off_seconds, OLD."end", OLD.spread_seconds, OLD.needs_approval)
          IS DISTINCT FROM (NEW.cut_off_seconds, NEW."end", NEW.spread_seconds, NEW.needs_approval)
          OR NEW.computed_until IS NULL AND OLD.computed_until IS NOT NULL)
    EXECUTE FUNCTION jobs_calendar_changed();

CREATE FUNCTION jobs_attachment_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Null where it does not apply: a field of such a record is null.
    before jobs_attachment;
    after jobs_attachment;
BEGIN
    IF TG_OP <> 'INSERT' THEN before := OLD; END IF;
    IF TG_OP <> 'DELETE' THEN after := NEW; END IF;
    UPDATE jobs_calendar SET is_stale = true
    WHERE id = after.calendar_id AND computed_until IS NULL AND NOT is_stale;
    UPDATE jobs_owner SET calendar_version = calendar_version + 1 WHERE id IN (
        VALUES (before.owner_id), (after.owner_id)
        UNION SELECT owner_id FROM jobs_job WHERE id IN (before.job_id, after.job_id)
        UNION SELECT owner_id FROM jobs_target WHERE id IN (before.target_id, after.target_id)
        UNION SELECT owner_id FROM jobs_targetgroup WHERE id IN (before.group_id, after.group_id)
    );
    RETURN NULL;
END $$;
CREATE TRIGGER attachment_changed AFTER INSERT OR UPDATE OR DELETE ON jobs_attachment
    FOR EACH ROW EXECUTE FUNCTION jobs_attachment_changed();

-- For each statement, not each row: one INSERT may add thousands of targets to a group.
CREATE FUNCTION jobs_group_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE jobs_owner SET calendar_version = calendar_version + 1 WHERE id IN (
        SELECT g.owner_id FROM jobs_targetgroup AS g
        WHERE g.id IN (SELECT targetgroup_id FROM changed)
          AND EXISTS (SELECT FROM jobs_attachment AS a WHERE a.group_id = g.id)
    );
    RETURN NULL;
END $$;
CREATE TRIGGER group_grew AFTER INSERT ON jobs_targetgroup_targets
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_group_changed();
CREATE TRIGGER group_shrank AFTER DELETE ON jobs_targetgroup_targets
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_group_changed();
