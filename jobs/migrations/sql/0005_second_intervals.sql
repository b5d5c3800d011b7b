-- A job with an interval in seconds has a PeriodicTask of django-celery-beat. Triggers write it in the
-- transaction that writes the job, for the ORM and raw SQL alike. They are deferred to the commit, so
-- that beat and other writers of such jobs wait for a commit only, not for a whole transaction.

-- Insert, update or delete the PeriodicTask of one job. It is disabled once its end has passed, as
-- celery-beat does it.
CREATE FUNCTION jobs_keep_in_step(of_job bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own text := 'fairshift job ' || of_job;
    job jobs_job;
    every_id integer;
BEGIN
    -- Before all else, so that those who do this follow each other. The table of intervals has no
    -- unique constraint that two inserts would meet, and one row says when anything was changed.
    PERFORM pg_advisory_xact_lock(1723, 0);
    SELECT * INTO job FROM jobs_job WHERE id = of_job AND schedule = 'seconds' AND interval_seconds > 0;
    IF NOT FOUND THEN
        DELETE FROM django_celery_beat_periodictask WHERE name = own;
    ELSE
        SELECT min(id) INTO every_id FROM django_celery_beat_intervalschedule
        WHERE every = job.interval_seconds AND period = 'seconds';
        IF every_id IS NULL THEN
            INSERT INTO django_celery_beat_intervalschedule (every, period)
            VALUES (job.interval_seconds, 'seconds') RETURNING id INTO every_id;
        END IF;
        INSERT INTO django_celery_beat_periodictask AS t (
            name, task, args, kwargs, headers, queue, priority, interval_id, start_time, expires, enabled,
            one_off, total_run_count, date_changed, description)
        VALUES (
            own, 'fairshift.system.fire', '[' || of_job || ']', '{}', '{}',
            -- The system's own queue: the setting is Django's, and this task was made with it.
            coalesce((SELECT queue FROM django_celery_beat_periodictask
                      WHERE task = 'fairshift.system.pulse' ORDER BY id LIMIT 1), 'system'),
            9,  -- behind ticks
            every_id, job.start_at, job.end_at,
            job.enabled AND (job.end_at IS NULL OR job.end_at > clock_timestamp()),
            false, 0, clock_timestamp(), 'Follows the job: change that.')
        ON CONFLICT (name) DO UPDATE SET
            task = EXCLUDED.task, args = EXCLUDED.args, kwargs = '{}', headers = '{}',
            queue = EXCLUDED.queue, interval_id = EXCLUDED.interval_id, crontab_id = NULL,
            solar_id = NULL, clocked_id = NULL, exchange = NULL, routing_key = NULL,
            priority = EXCLUDED.priority, expire_seconds = NULL, start_time = EXCLUDED.start_time,
            expires = EXCLUDED.expires, enabled = EXCLUDED.enabled, one_off = false,
            last_run_at = CASE WHEN EXCLUDED.enabled THEN t.last_run_at END,
            date_changed = EXCLUDED.date_changed;
    END IF;
    -- Last, and with the time after the wait for its lock: beat looks whether this has grown.
    INSERT INTO django_celery_beat_periodictasks (ident, last_update) VALUES (1, clock_timestamp())
    ON CONFLICT (ident) DO UPDATE SET last_update = clock_timestamp();
END $$;

CREATE FUNCTION jobs_job_keeps_in_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobs_keep_in_step(CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER seconds_job_is_made AFTER INSERT ON jobs_job DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.schedule = 'seconds') EXECUTE FUNCTION jobs_job_keeps_in_step();
CREATE CONSTRAINT TRIGGER seconds_job_is_gone AFTER DELETE ON jobs_job DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.schedule = 'seconds') EXECUTE FUNCTION jobs_job_keeps_in_step();
CREATE CONSTRAINT TRIGGER seconds_job_is_changed AFTER UPDATE ON jobs_job DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (
        (OLD.schedule = 'seconds' OR NEW.schedule = 'seconds')
        AND (OLD.schedule, OLD.interval_seconds, OLD.start_at, OLD.end_at, OLD.enabled)
        IS DISTINCT FROM
        (NEW.schedule, NEW.interval_seconds, NEW.start_at, NEW.end_at, NEW.enabled))
    EXECUTE FUNCTION jobs_job_keeps_in_step();
