-- Note a send of a PeriodicTask before its publish, if its beat leads, and move the entry on.
-- Parameters: leader text (the lease's name), holder text, name text (the entry's),
-- due_at timestamptz, task_id text.
-- Result: one row: is_led, is_noted (it is to be published; else it is known to be).
-- Keeps true: due times of an entry only grow; who does not hold the lease notes nothing.
WITH led AS (
    -- Locked: nobody takes the lease over between this look and the commit.
    SELECT FROM jobs_leader
    -- guard: beats: who does not hold the lease notes nothing
    WHERE name = %(leader)s AND holder = %(holder)s AND until > clock_timestamp()
    FOR SHARE),
noted AS (
    INSERT INTO jobs_sententry AS s (name, due_at, task_id, sent_at)
    SELECT %(name)s, %(due_at)s, %(task_id)s, NULL FROM led
    ON CONFLICT (name) DO UPDATE
    SET due_at = EXCLUDED.due_at, task_id = EXCLUDED.task_id, sent_at = NULL
    WHERE s.due_at < EXCLUDED.due_at OR (s.task_id = EXCLUDED.task_id AND s.sent_at IS NULL)
    RETURNING s.name),
moved AS (
    UPDATE django_celery_beat_periodictask
    SET last_run_at = %(due_at)s, total_run_count = total_run_count + 1
    -- Somebody may be editing it, and writes an old time then: the ledger refuses that one.
    WHERE id = (SELECT id FROM django_celery_beat_periodictask
                WHERE name = (SELECT name FROM noted) AND enabled
                FOR UPDATE SKIP LOCKED))
SELECT EXISTS (SELECT FROM led) AS is_led, EXISTS (SELECT FROM noted) AS is_noted
