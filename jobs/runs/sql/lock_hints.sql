-- A part of the statements that admit: the hints, the live worker, the queued rows, locked, and the moment.
-- Keeps true: rows are locked in id order, locked ones are skipped; one moment, clock_timestamp() after
-- the locks, decides and is written.
-- Cost: whatever statistics PostgreSQL has, each row is found by its id in a subquery of its own
-- (`state || ''` is in no index), and written where it was found. A join might read all rows.
hint AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(tasks)s::text[], %(tokens)s::bigint[]) AS h(id, task, token)
), node AS (
    SELECT id FROM jobs_worker
    WHERE id = %(worker)s AND stopped_at IS NULL
      -- guard: a worker that was frozen past its lease admits nothing
      AND heartbeat_at > clock_timestamp() - make_interval(secs => %(lease)s)
), locked AS MATERIALIZED (
    SELECT h.id, h.task, h.token AS next_token, found.*
    FROM (SELECT id, task, token FROM hint ORDER BY id) AS h
    LEFT JOIN LATERAL (
        SELECT r.ctid AS place, r.owner_id, r.lock_key, r.priority, r.deadline_at, r.attempt_count,
            r.job_id, r.target_id, r.policy, r.window_policy, r.queue, r.payload_key, r.submission_id
        FROM {runs} r
        -- guard: only what is queued is admitted
        -- guard: the row names the task
        WHERE r.id = h.id AND r.task = h.task AND r.state || '' = 'queued'
          -- guard: a hint from before a change of its run is stale
          AND (h.token = 0 OR r.token = h.token - 1)
          AND EXISTS (SELECT FROM node)
          AND ({is_one_day} OR r.id = ANY(%(ids)s))
        FOR UPDATE SKIP LOCKED
    ) AS found ON true
), now AS MATERIALIZED (
    -- guard: an admission reads the clock when it has waited, and not before
    SELECT clock_timestamp() AS at FROM (SELECT count(*) FROM locked) AS after_the_locks
)
