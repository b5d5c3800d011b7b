-- Unblock runs whose cap, lock or pause no longer applies, as many as there is room for.
-- Parameters: owners bigint[] or null (all), locks text[] or null (all), most int, lease seconds.
-- Result: id of each unblocked run, for the outbox.
-- Keeps true: admission decides again; one too many only costs a hint. Rows are locked in id order, and
-- locked ones are left for the next call.
WITH waiting AS (
    SELECT r.id, r.owner_id, r.lock_key, r.priority, o.max_running
    FROM jobs_run r JOIN jobs_owner o ON o.id = r.owner_id
    WHERE r.state = 'queued' AND r.blocked_by <> '' AND r.blocked_by IN ('paused', 'lock', 'cap')
      AND (%(owners)s::bigint[] IS NULL OR r.owner_id = ANY(%(owners)s::bigint[])
           OR r.lock_key = ANY(%(locks)s::text[]))
      AND NOT (o.paused_at IS NOT NULL
               AND (o.paused_until IS NULL OR o.paused_until > clock_timestamp()))
      AND NOT (r.lock_key <> '' AND EXISTS (
            SELECT FROM jobs_run a
            WHERE a.lock_key = r.lock_key AND a.lock_key <> ''
              AND a.state IN ('admitted', 'running', 'cancelling')))
), at_lock AS (
    SELECT w.*,
        row_number() OVER (
            PARTITION BY w.lock_key, CASE w.lock_key WHEN '' THEN w.id END
            ORDER BY w.priority DESC, w.id) AS place_at_lock
    FROM waiting w
), ranked AS (
    -- Only the first run of a lock counts for the cap.
    SELECT l.*, row_number() OVER (PARTITION BY l.owner_id ORDER BY l.priority DESC, l.id) AS place
    FROM at_lock l WHERE l.place_at_lock = 1
), chosen AS (
    SELECT k.id FROM ranked k
    WHERE k.max_running IS NULL
        OR k.place <= k.max_running - (
            SELECT count(*) FROM jobs_run a
            WHERE a.owner_id = k.owner_id AND a.state IN ('admitted', 'running', 'cancelling'))
    ORDER BY k.id
    LIMIT %(most)s
), locked AS MATERIALIZED (
    SELECT r.id FROM jobs_run r
    WHERE r.id = ANY(ARRAY(SELECT id FROM chosen)) AND r.state = 'queued' AND r.blocked_by <> ''
    ORDER BY r.id
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_run r SET
    blocked_by = '',
    queued_at = clock_timestamp(),
    hint_check_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM locked l
WHERE r.id = l.id
RETURNING r.id
