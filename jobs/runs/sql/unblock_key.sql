-- Unblock runs whose encryption key a live worker of their queue has now.
-- Parameters: lease seconds, most int.
-- Result: id of each unblocked run, the oldest first, for the outbox.
-- Keeps true: admission decides all else. Locked rows are left for the next call.
WITH known AS MATERIALIZED (
    SELECT DISTINCT q.name AS queue, k.id AS key
    FROM jobs_worker AS w
    CROSS JOIN jsonb_array_elements_text(
        CASE jsonb_typeof(w.queues) WHEN 'array' THEN w.queues ELSE '[]' END) AS q (name)
    CROSS JOIN unnest(w.keys) AS k (id)
    WHERE w.stopped_at IS NULL
      AND w.heartbeat_at > clock_timestamp() - make_interval(secs => %(lease)s)
), locked AS MATERIALIZED (
    SELECT r.id FROM jobs_run r
    WHERE r.state = 'queued' AND r.blocked_by = 'key' AND r.blocked_by <> ''
      -- guard: the sweep frees runs whose key a worker of their queue has, and no others
      AND ((r.queue, r.payload_key) IN (SELECT queue, key FROM known) OR r.payload_key = 0)
    ORDER BY r.id
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_run r SET
    blocked_by = '',
    hint_check_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM locked l
WHERE r.id = l.id
RETURNING r.id
