-- Lock and return active runs whose worker has stopped, is silent for a lease, has no row, or is alive
-- and does not have them (the answer to an admission was lost).
-- Parameters: lease seconds, most int, unstarted text (the cause of a loss before the start); worker uuid
-- and held uuid[]: a live worker and the runs that it has, or null.
-- Result: what a decision on the next attempt needs; `is_unheard`: its worker is alive; `has_started`:
-- this or an earlier attempt did something; `unstarted_count`: how often it was lost before its start.
-- Locked rows are left for the next call.
SELECT r.id, r.state, r.token, r.attempt_count, r.max_attempts, r.policy,
    CASE WHEN r.history @> '[["running"]]' THEN (
        SELECT count(*) FILTER (WHERE move ->> 0 = 'running')
            > count(*) FILTER (WHERE move ->> 2 = 'not begun')
        FROM jsonb_array_elements(r.history) AS move
    ) ELSE false END AS has_started,
    (SELECT count(*) FROM jsonb_array_elements(
        CASE jsonb_typeof(r.history) WHEN 'array' THEN r.history ELSE '[]' END) AS move
     WHERE move ->> 2 = %(unstarted)s) AS unstarted_count,
    coalesce(w.hostname, '') AS hostname,
    w.id IS NOT NULL AND w.stopped_at IS NULL
        AND w.heartbeat_at >= clock_timestamp() - make_interval(secs => %(lease)s) AS is_unheard
FROM jobs_run r LEFT JOIN jobs_worker w ON w.id = r.worker_id
WHERE r.state IN ('admitted', 'running', 'cancelling')
  AND (w.id IS NULL
       -- guard: a worker that has left is gone at once
       OR w.stopped_at IS NOT NULL
       -- guard: a worker that is silent for a lease is gone
       -- guard: only workers that are silent for a lease are gone
       OR w.heartbeat_at < clock_timestamp() - make_interval(secs => %(lease)s)
       -- guard: what never reached its worker is taken back
       OR (r.worker_id = %(worker)s::uuid
           -- guard: an answer that is on its way has a lease of time
           AND r.admitted_at < clock_timestamp() - make_interval(secs => %(lease)s)
           -- guard: what a living worker holds is not taken back
           AND NOT r.id = ANY(%(held)s::uuid[])))
ORDER BY r.id
LIMIT %(most)s
FOR UPDATE OF r SKIP LOCKED
