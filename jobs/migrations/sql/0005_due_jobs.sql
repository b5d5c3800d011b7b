-- What the recurring engine needs beside Django's own columns.

-- changed_xid is the transaction that last rescheduled, enabled or resumed a job, and effective_from
-- its time. A tick's snapshot says whether the tick has seen it. An update of other columns leaves
-- both as they are: the job must not trigger again.
ALTER TABLE jobs_job ADD COLUMN changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id();
ALTER TABLE jobs_tick ADD COLUMN seen pg_snapshot;
ALTER TABLE jobs_cursor ADD COLUMN again_seen pg_snapshot;

-- For the ORM and raw SQL alike: a schedule takes effect when it is written, and a job that was off or
-- paused is due only from when it is on again.
CREATE FUNCTION jobs_job_is_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := clock_timestamp();
    noted jobs_job := OLD;
    was_paused boolean := OLD.enabled AND coalesce(OLD.paused_until > at, false);
    is_paused boolean := NEW.enabled AND coalesce(NEW.paused_until > at, false);
    is_rescheduled boolean :=
        (NEW.schedule, NEW.interval_minutes, NEW.interval_seconds, NEW.cron, NEW.once_at, NEW.zone,
         NEW.start_at, NEW.end_at, NEW.smooth, NEW.shard, NEW.phase)
        IS DISTINCT FROM
        (OLD.schedule, OLD.interval_minutes, OLD.interval_seconds, OLD.cron, OLD.once_at, OLD.zone,
         OLD.start_at, OLD.end_at, OLD.smooth, OLD.shard, OLD.phase);
BEGIN
    NEW.changed_xid := OLD.changed_xid;
    -- Our own note of a pause is no change of the job.
    noted.paused_from := NEW.paused_from;
    IF NEW.paused_from IS NOT DISTINCT FROM OLD.paused_from OR NEW IS DISTINCT FROM noted THEN
        NEW.changed_at := at;
    END IF;
    IF OLD.enabled AND NOT NEW.enabled THEN
        -- Since when it is off: there a pause ends.
        NEW.effective_from := at;
    END IF;
    IF is_rescheduled
       OR (NEW.enabled AND NOT OLD.enabled)
       OR (NEW.enabled AND OLD.paused_until > at AND (NEW.paused_until IS NULL OR NEW.paused_until <= at))
    THEN
        NEW.changed_xid := pg_current_xact_id();
        NEW.effective_from := at;
    END IF;
    -- What a pause keeps from running is recorded when it is over (jobs/recurring/sql/close_pauses.sql), by the
    -- schedule that it met: a new schedule begins it anew.
    IF is_paused AND (is_rescheduled OR NOT was_paused) THEN
        NEW.paused_from := at;
    ELSIF is_rescheduled THEN
        NEW.paused_from := NULL;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER job_is_changed BEFORE UPDATE ON jobs_job
    FOR EACH ROW EXECUTE FUNCTION jobs_job_is_changed();

CREATE FUNCTION jobs_job_begins_paused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.paused_from := clock_timestamp();
    RETURN NEW;
END $$;

CREATE TRIGGER job_begins_paused BEFORE INSERT ON jobs_job
    FOR EACH ROW WHEN (NEW.enabled AND NEW.paused_until IS NOT NULL)
    EXECUTE FUNCTION jobs_job_begins_paused();

-- The due jobs of a slot: an index scan reads these rows only. `schedule || ''` keeps the planner from
-- any other index, so the statements write it too. After a bulk insert of a million jobs its
-- statistics are old for a while, and it would read all jobs of a kind.
CREATE INDEX job_due_interval ON jobs_job (interval_minutes, phase, shard)
    WHERE schedule || '' = 'interval' AND enabled;
-- The distinct intervals, one index lookup each, from the one before.
CREATE VIEW jobs_intervals AS
WITH RECURSIVE intervals (n) AS (
    (SELECT interval_minutes FROM jobs_job
     WHERE schedule || '' = 'interval' AND enabled AND interval_minutes > 0
     ORDER BY interval_minutes LIMIT 1)
    UNION ALL
    SELECT (SELECT j.interval_minutes FROM jobs_job AS j
            WHERE j.schedule || '' = 'interval' AND j.enabled AND j.interval_minutes > intervals.n
            ORDER BY j.interval_minutes LIMIT 1)
    FROM intervals WHERE n IS NOT NULL
)
SELECT n FROM intervals WHERE n IS NOT NULL;
-- A job that is not smooth is due in the first slot of its minute.
CREATE INDEX job_due_cron ON jobs_job (cron, zone, (CASE WHEN smooth THEN shard ELSE 0 END))
    WHERE schedule || '' = 'cron' AND enabled;
CREATE INDEX job_due_once ON jobs_job (once_at, (CASE WHEN smooth THEN shard ELSE 0 END))
    WHERE schedule || '' = 'once' AND enabled;
-- Late commits:
CREATE INDEX job_changed ON jobs_job (changed_xid);
-- Pauses that are not recorded yet:
CREATE INDEX job_paused_from ON jobs_job (id) WHERE paused_from IS NOT NULL;

-- Lists of jobs in the admin, ordered by owner and key; few jobs are paused, disabled or broken:
CREATE INDEX job_by_task ON jobs_job (task, owner_id, key);
CREATE INDEX job_by_schedule ON jobs_job (schedule, owner_id, key);
CREATE INDEX job_paused ON jobs_job (owner_id, key) WHERE paused_until IS NOT NULL;
CREATE INDEX job_disabled ON jobs_job (owner_id, key) WHERE NOT enabled;
CREATE INDEX job_broken ON jobs_job (owner_id, key) WHERE enabled AND (
    schedule NOT IN ('manual', 'once', 'interval', 'seconds', 'cron')
    OR schedule = 'once'
        AND (once_at IS NULL OR once_at <> date_bin('1 minute', once_at, to_timestamp(0)))
    OR schedule = 'seconds' AND (interval_seconds IS NULL OR interval_seconds < 1)
    OR schedule = 'interval'
        AND (interval_minutes IS NULL OR interval_minutes < 1 OR phase IS NULL OR shard IS NULL)
    OR schedule IN ('cron', 'once') AND smooth AND shard IS NULL);
-- Search by prefix of a key or a name, whatever the collation; many names are empty:
CREATE INDEX job_by_key ON jobs_job (key COLLATE "C", owner_id);
CREATE INDEX job_by_name ON jobs_job (upper(name) COLLATE "C", owner_id) WHERE name <> '';
CREATE INDEX target_by_name ON jobs_target (name COLLATE "C", owner_id);
-- Missed spans by reason, newest first:
CREATE INDEX missed_by_reason ON jobs_missed (reason, id);

-- Numbers for phases: one sequence for each of 64 classes of intervals. nextval waits for no other
-- transaction, and a rollback takes no number back.
DO $$
BEGIN
    FOR class IN 0..63 LOOP
        EXECUTE format('CREATE SEQUENCE jobs_phase_%s', class);
    END LOOP;
END $$;

-- The id of a job's run at a due time, equal to that of `jobs.core.ids.scheduled_id`.
-- plpgsql takes half the time of SQL, which PostgreSQL inlines only without a FROM.
CREATE FUNCTION jobs_scheduled_id(job_id bigint, due_at timestamptz, salt text DEFAULT '')
RETURNS uuid LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM due_at) * 1000);
    tail bytea := sha256(convert_to(job_id || ':' || ms || ':' || salt, 'UTF8'));
BEGIN
    RETURN encode(
        set_byte(
            set_byte(
                substring(int8send(ms) FROM 3 FOR 6) || substring(tail FROM 1 FOR 10),
                6, 128 | (get_byte(tail, 0) & 15)),
            8, 128 | (get_byte(tail, 2) & 63)),
        'hex')::uuid;
END $$;

-- Due times count from here on.
INSERT INTO jobs_cursor (slot, beat_at, again_seen)
VALUES (floor(extract(epoch FROM clock_timestamp()) * 2)::bigint, clock_timestamp(),
        pg_current_snapshot());
