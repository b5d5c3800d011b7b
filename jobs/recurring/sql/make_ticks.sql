-- Hand out the slots up to now as ticks, and find earlier ticks that must be sent again.
-- Parameters: grace int (slots): older slots are caught up with; span int: most slots of a tick;
--   patience float (seconds) without progress after which a tick is sent again; keep int: slots for
--   which a tick that is done is kept; rest int: slots between two ticks while no job is enabled.
-- Result: id of each tick that is to be sent; none while another pulse runs.
-- Keeps true: every slot is in exactly one tick, for the cursor moves in the statement that makes
--   them. `sent_at` is set before the tick is sent: a lost message is sent again after `patience`.
--   A tick that a worker has locked is not waited for: the cursor would stand still meanwhile.
--   Without an enabled job a tick is done as it is made: what it does not see is a late commit.
WITH active AS MATERIALIZED (
    -- By the indexes of due jobs, which hold enabled ones only.
    SELECT EXISTS (SELECT FROM jobs_job WHERE schedule || '' = 'interval' AND enabled)
        OR EXISTS (SELECT FROM jobs_job WHERE schedule || '' = 'cron' AND enabled)
        OR EXISTS (SELECT FROM jobs_job WHERE schedule || '' = 'once' AND enabled) AS is_any
), cursor AS MATERIALIZED (
    SELECT id, slot, upto, is_any
    FROM active
    CROSS JOIN (
        SELECT id, slot FROM jobs_cursor ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) AS locked
    CROSS JOIN LATERAL (
        SELECT floor(extract(epoch FROM clock_timestamp()) * 2)::bigint + 1 AS upto) AS now
    -- Nothing is written each second for no job.
    WHERE is_any OR slot + %(rest)s <= upto
), moved AS (
    -- guard: due times: the cursor moves in the statement that makes the ticks
    UPDATE jobs_cursor c SET slot = greatest(cursor.slot, cursor.upto), beat_at = clock_timestamp()
    FROM cursor WHERE c.id = cursor.id
), late AS (
    -- guard: due times: what is older than the grace is judged
    SELECT least(greatest(slot, upto - %(grace)s), greatest(slot, upto)) AS until FROM cursor
), made AS (
    INSERT INTO jobs_tick
        (first_slot, end_slot, kind, after_job, created_at, sent_at, seen, done_at)
    SELECT span.*, 0, clock_timestamp(), clock_timestamp(),
        CASE WHEN NOT is_any THEN pg_current_snapshot() END,
        CASE WHEN NOT is_any THEN clock_timestamp() END
    FROM cursor, late, LATERAL (
        SELECT slot, until, 'catch_up' WHERE until > slot
        UNION ALL
        SELECT first, least(first + %(span)s, upto), 'due'
        FROM generate_series(until, upto - 1, %(span)s) AS first) AS span
    RETURNING id, done_at
), silent AS (
    UPDATE jobs_tick t SET sent_at = clock_timestamp()
    WHERE t.id IN (
        SELECT open.id FROM jobs_tick AS open, cursor
        WHERE open.done_at IS NULL
            AND open.sent_at < clock_timestamp() - make_interval(secs => %(patience)s)
        FOR UPDATE OF open SKIP LOCKED)
    RETURNING t.id
), forgotten AS (
    DELETE FROM jobs_tick t USING cursor
    WHERE t.done_at IS NOT NULL AND t.end_slot < cursor.upto - %(keep)s
)
SELECT id FROM silent UNION ALL SELECT id FROM made WHERE done_at IS NULL ORDER BY id
