-- Hand out the slots up to now as ticks, and find earlier ticks that must be sent again.
-- Parameters: grace int (slots): older slots are caught up with; span int: most slots of a tick;
--   patience float (seconds) without progress after which a tick is sent again; keep int: slots for
--   which a tick that is done is kept.
-- Result: id of each tick that is to be sent; none while another pulse runs.
-- Keeps true: every slot is in exactly one tick, for the cursor moves in the statement that makes
--   them. `sent_at` is set before the tick is sent: a lost message is sent again after `patience`.
--   A tick that a worker has locked is not waited for: the cursor would stand still meanwhile.
WITH cursor AS MATERIALIZED (
    SELECT id, slot, floor(extract(epoch FROM clock_timestamp()) * 2)::bigint + 1 AS upto
    FROM jobs_cursor ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
), moved AS (
    -- guard: due times: the cursor moves in the statement that makes the ticks
    UPDATE jobs_cursor c SET slot = greatest(cursor.slot, cursor.upto), beat_at = clock_timestamp()
    FROM cursor WHERE c.id = cursor.id
), late AS (
    -- guard: due times: what is older than the grace is judged
    SELECT least(greatest(slot, upto - %(grace)s), greatest(slot, upto)) AS until FROM cursor
), made AS (
    INSERT INTO jobs_tick (first_slot, end_slot, kind, after_job, created_at, sent_at)
    SELECT slot, until, 'catch_up', 0, clock_timestamp(), clock_timestamp()
    FROM cursor, late WHERE until > slot
    UNION ALL
    SELECT first, least(first + %(span)s, upto), 'due', 0, clock_timestamp(), clock_timestamp()
    FROM cursor, late, generate_series(until, upto - 1, %(span)s) AS first
    RETURNING id
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
SELECT id FROM silent UNION ALL SELECT id FROM made ORDER BY id
