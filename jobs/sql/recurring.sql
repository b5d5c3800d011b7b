-- What the recurring engine needs of the table of jobs, beside Django's own columns.

-- Which transaction wrote a job last: a tick's snapshot then says whether it has seen that.
ALTER TABLE jobs_job ADD COLUMN changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id();
ALTER TABLE jobs_tick ADD COLUMN seen pg_snapshot;
ALTER TABLE jobs_cursor ADD COLUMN again_seen pg_snapshot;

-- Whoever writes a job, by whatever way: a schedule holds from when it was written, and a job that
-- was off or paused is due only from when it is on again.
CREATE FUNCTION jobs_job_is_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    NEW.changed_at := clock_timestamp();
    IF (NEW.schedule, NEW.interval_minutes, NEW.interval_seconds, NEW.cron, NEW.once_at, NEW.zone,
        NEW.start_at, NEW.end_at, NEW.smooth, NEW.shard, NEW.phase)
       IS DISTINCT FROM
       (OLD.schedule, OLD.interval_minutes, OLD.interval_seconds, OLD.cron, OLD.once_at, OLD.zone,
        OLD.start_at, OLD.end_at, OLD.smooth, OLD.shard, OLD.phase)
       OR (NEW.enabled AND NOT OLD.enabled)
       OR (OLD.paused_until > clock_timestamp()
           AND (NEW.paused_until IS NULL OR NEW.paused_until <= clock_timestamp()))
    THEN
        NEW.effective_from := clock_timestamp();
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER job_is_changed BEFORE UPDATE ON jobs_job
    FOR EACH ROW EXECUTE FUNCTION jobs_job_is_changed();

-- The due jobs of a slot, by index: only these rows are read.
CREATE INDEX job_due_interval ON jobs_job (interval_minutes, phase, shard)
    WHERE schedule = 'interval' AND enabled;
CREATE INDEX job_due_cron ON jobs_job (cron, zone, shard) WHERE schedule = 'cron' AND enabled;
CREATE INDEX job_due_once ON jobs_job (once_at) WHERE schedule = 'once' AND enabled;
-- Jobs that are read again:
CREATE INDEX job_changed ON jobs_job (changed_at);

-- Numbers for phases, a sequence for each of 64 classes of intervals: they grow whatever becomes of
-- the transaction that took them, and nobody waits for anybody.
DO $$
BEGIN
    FOR class IN 0..63 LOOP
        EXECUTE format('CREATE SEQUENCE jobs_phase_%s', class);
    END LOOP;
END $$;

-- The one id of a job's run at a due time: `jobs.ids.scheduled_id`, in SQL.
CREATE FUNCTION jobs_scheduled_id(job_id bigint, due_at timestamptz, salt text DEFAULT '')
RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(
        set_byte(
            set_byte(
                substring(int8send(due.ms) FROM 3 FOR 6) || substring(tail FROM 1 FOR 10),
                6, 128 | (get_byte(tail, 0) & 15)),
            8, 128 | (get_byte(tail, 2) & 63)),
        'hex')::uuid
    FROM (SELECT floor(extract(epoch FROM due_at) * 1000)::bigint AS ms) AS due,
    LATERAL (SELECT sha256(convert_to(job_id || ':' || due.ms || ':' || salt, 'UTF8')) AS tail) AS h
$$;

INSERT INTO jobs_cursor (slot, again_slot, beat_at)
VALUES (floor(extract(epoch FROM clock_timestamp()) * 2)::bigint,
        floor(extract(epoch FROM clock_timestamp()) * 2)::bigint, clock_timestamp());
