-- Admit queued runs to one worker: the first of the two doors.
-- Parameters: ids uuid[], tasks text[], tokens bigint[] (each hint's run, task and token of the
-- admission; 0: any), worker uuid, lease seconds; owners bigint[] and rooms bigint[] (how many more runs
-- of a capped owner may run), held_locks text[]; are_locked (whether this transaction has taken the locks
-- of lock_limits.sql); keys smallint[] (ids of the encryption keys that the worker has).
-- Result: a row per hint: id, verdict ('', 'expired', 'paused', 'window', 'lock', 'cap', 'key', 'busy',
-- 'wave', 'gone', 'stale'; 'limited': unchanged, because the locks that it needs are missing). An
-- admitted run also has its values for the worker: start_within (seconds in which it must start), soft_close and
-- hard_close (seconds until its calendars end it), has_started (an earlier attempt began its task).
-- Keeps true: rows are locked in id order, locked ones are skipped; one moment, clock_timestamp() after
-- the locks, decides and is written; a token is issued once; caps, lock keys (count_room.sql) and
-- calendars are read on a snapshot younger than the locks of lock_limits.sql. A run outside its windows
-- is held, and due at once for promotion, which knows when they open; one whose wave is not released,
-- or whose rollout is stopped, is held until its release sets a time.
-- Cost: whatever statistics PostgreSQL has, each row is found by its id in a subquery of its own
-- (`state || ''` is in no index), and written where it was found. A join might read all rows.
WITH hint AS (
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
), gated AS (
    SELECT l.id, l.place, l.owner_id, o.slug, l.lock_key, l.priority, room.most,
        nullif(gate.until, 'infinity') - jobs_needed(l.policy) AS not_after, gate.soft_at, gate.hard_at,
        rollout.deadline_seconds IS NOT NULL AS has_new_deadline,
        CASE
            -- guard: what is limited is decided under its locks
            WHEN NOT %(are_locked)s::bool AND (
                o.max_running IS NOT NULL OR l.lock_key <> '' OR o.calendar_version > 0
                OR rollout.state IS NOT NULL
            ) THEN 'limited'
            -- guard: a run does not start before its wave, nor while its rollout is stopped
            WHEN rollout.state IN ('stopped', 'paused') OR l.id > rollout.released_to THEN 'wave'
            -- guard: past its deadline a run expires
            WHEN l.deadline_at <= now.at AND l.attempt_count = 0 THEN 'expired'
            -- guard: a paused owner's runs wait
            WHEN o.paused_at IS NOT NULL
             AND (o.paused_until IS NULL OR o.paused_until > now.at) THEN 'paused'
            -- guard: an admission outside its windows is refused
            WHEN NOT coalesce(now.at <= gate.until - jobs_needed(l.policy), applying.ids IS NULL)
              OR l.window_policy = 'required' AND coalesce(applying.ids, '{}') = '{}' THEN 'window'
            -- guard: a run whose key is missing waits, and spends no attempt
            WHEN l.payload_key <> 0 AND l.payload_key <> ALL(%(keys)s::smallint[]) THEN CASE
                -- guard: a run whose key another worker has is given back for it
                WHEN EXISTS (
                    SELECT FROM jobs_worker w
                    WHERE w.stopped_at IS NULL AND l.payload_key = ANY(w.keys)
                      AND w.queues @> jsonb_build_array(l.queue)
                      AND w.heartbeat_at > clock_timestamp() - make_interval(secs => %(lease)s)
                ) THEN 'busy' ELSE 'key' END
            WHEN l.lock_key <> '' AND (
                -- guard: a run waits for a lock that another run holds
                l.lock_key = ANY(%(held_locks)s::text[])
                -- guard: of one batch one run gets a lock
                OR row_number() OVER (PARTITION BY l.lock_key ORDER BY l.priority DESC, l.id) > 1
            ) THEN 'lock'
            ELSE ''
        END AS verdict
    FROM locked l
    CROSS JOIN now
    CROSS JOIN LATERAL (
        SELECT slug, paused_at, paused_until, calendar_version, max_running FROM jobs_owner
        WHERE id = l.owner_id OFFSET 0
    ) AS o
    LEFT JOIN LATERAL (
        SELECT state, released_to, deadline_seconds FROM jobs_rollout WHERE submission_id = l.submission_id OFFSET 0
    ) AS rollout ON true
    CROSS JOIN LATERAL (SELECT
        -- Null without calendars: the strict function jobs_gate is not called then.
        CASE WHEN o.calendar_version > 0 AND l.window_policy <> 'overridden'
            THEN jobs_calendars(l.owner_id, l.job_id, l.target_id, l.window_policy) END AS ids) AS applying
    CROSS JOIN LATERAL jobs_gate(applying.ids, now.at) AS gate
    LEFT JOIN unnest(%(owners)s::bigint[], %(rooms)s::bigint[]) AS room(owner_id, most)
        ON room.owner_id = l.owner_id
), judged AS (
    SELECT g.id, g.place, g.slug, g.most IS NOT NULL OR g.lock_key <> '' AS is_limited,
        g.not_after, g.soft_at, g.hard_at, g.has_new_deadline,
        CASE
            WHEN g.verdict = '' AND g.most IS NOT NULL
             AND count(*) FILTER (WHERE g.verdict = '') OVER (
                    -- guard: a batch fills a cap and no more
                    PARTITION BY g.owner_id ORDER BY g.priority DESC, g.id) > g.most THEN 'cap'
            ELSE g.verdict
        END AS verdict
    FROM gated g
), moved AS (
    UPDATE {runs} r SET
        state = coalesce(next.state, r.state),
        blocked_by = CASE WHEN j.verdict IN ('paused', 'lock', 'cap', 'key', 'wave') THEN j.verdict ELSE '' END,
        -- guard: a token is handed out once
        token = r.token + (j.verdict = '')::int,
        -- guard: an admission spends an attempt
        attempt_count = r.attempt_count + (j.verdict = '')::int,
        worker_id = CASE j.verdict WHEN '' THEN %(worker)s ELSE r.worker_id END,
        admitted_at = CASE j.verdict WHEN '' THEN now.at ELSE r.admitted_at END,
        started_at = CASE j.verdict WHEN '' THEN NULL ELSE r.started_at END,
        ended_at = CASE j.verdict WHEN 'expired' THEN now.at ELSE r.ended_at END,
        next_at = CASE j.verdict WHEN 'window' THEN now.at WHEN 'wave' THEN NULL ELSE r.next_at END,
        -- The release sets a new deadline.
        deadline_at = CASE WHEN j.verdict = 'wave' AND j.has_new_deadline AND r.attempt_count = 0
            THEN NULL ELSE r.deadline_at END,
        closes_at = CASE j.verdict WHEN '' THEN least(j.soft_at, j.hard_at) ELSE r.closes_at END,
        stop_at = CASE j.verdict WHEN '' THEN NULL ELSE r.stop_at END,
        history = CASE WHEN next.state IS NULL THEN r.history
            ELSE r.history || jsonb_build_array(jsonb_build_array(
                next.state, extract(epoch FROM now.at), next.cause)) END
    FROM judged j
    CROSS JOIN now
    LEFT JOIN (VALUES
        ('', 'admitted', ''), ('expired', 'expired', 'deadline passed'),
        ('window', 'held', 'window closed'), ('wave', 'held', 'wave not released')
    ) AS next (verdict, state, cause) ON next.verdict = j.verdict
    WHERE r.ctid = j.place AND j.verdict <> 'limited'
      AND ({is_one_day} OR r.id = j.id AND r.id = ANY(%(ids)s))
    RETURNING r.id, j.verdict, j.is_limited,
        extract(epoch FROM j.not_after - now.at)::float8 AS start_within,
        extract(epoch FROM j.soft_at - now.at)::float8 AS soft_close,
        extract(epoch FROM j.hard_at - now.at)::float8 AS hard_close,
        r.token, r.attempt_count, j.slug AS owner, r.job_id, r.submission_id, r.due_at,
        r.labels, r.policy, r.options, r.max_attempts, r.payload, r.payload_key,
        CASE WHEN r.history @> '[["running"]]' THEN (
            SELECT count(*) FILTER (WHERE move ->> 0 = 'running')
                > count(*) FILTER (WHERE move ->> 2 = 'not begun')
            FROM jsonb_array_elements(r.history) AS move
        ) ELSE false END AS has_started,
        r.owner_id, r.state, r.ended_at
), announced AS (
    {runs/announce}
)
SELECT * FROM moved
UNION ALL
SELECT l.id,
    CASE
        WHEN NOT EXISTS (SELECT FROM node) THEN 'stale'
        WHEN (SELECT true FROM judged j WHERE j.id = l.id AND j.verdict = 'limited') THEN 'limited'
        -- Not EXISTS, for which a plan may read all queued runs: this is evaluated for few rows.
        WHEN (
            SELECT true FROM {runs} q
            WHERE q.id = l.id AND q.task = l.task AND q.state || '' = 'queued'
              AND (l.next_token = 0 OR q.token = l.next_token - 1)
              AND ({is_one_day} OR q.id = ANY(%(ids)s))
        -- guard: a hint whose row is held is given back, not dropped
        ) THEN 'busy'
        ELSE 'gone'
    END,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL
FROM locked l
-- What was locked in a newer version than this statement sees is not moved either.
-- guard: a row that has just changed is admitted the next time
WHERE l.id NOT IN (SELECT m.id FROM moved m)
