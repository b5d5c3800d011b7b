-- Record a send of a PeriodicTask before its publish, if its beat leads, and advance the entry.
-- Parameters: leader text (the lease's name), holder text, name text (the entry's), due_at timestamptz,
-- task_id text.
-- Result: one row: is_led, is_noted (publish it; else it is known to be published).
-- Keeps true: due times of an entry only increase; only the holder of the lease records.
WITH led AS (
    -- Locked until the commit, so that no other beat takes the lease.
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
    -- Not if it is being edited: an old time that the editor writes is refused by the ledger.
    WHERE id = (SELECT id FROM django_celery_beat_periodictask
                WHERE name = (SELECT name FROM noted) AND enabled
                FOR UPDATE SKIP LOCKED))
SELECT EXISTS (SELECT FROM led) AS is_led, EXISTS (SELECT FROM noted) AS is_noted
