-- Admit queued runs to one worker, or refuse them: the first of the two doors, for what admit_plain.sql leaves.
-- Parameters: ids uuid[], tasks text[], tokens bigint[] (each hint's run, task and token of the
-- admission; 0: any), worker uuid, lease seconds; owners bigint[] and rooms bigint[] (how many more runs
-- of a capped owner may run), held_locks text[]; keys smallint[] (ids of the encryption keys that the worker has).
-- Result: a row per hint: id, verdict ('', 'expired', 'paused', 'window', 'lock', 'cap', 'key', 'busy',
-- 'wave', 'gone', 'stale'). An admitted run also has its values for the worker: start_within (seconds in which
-- it must start), soft_close and hard_close (seconds until its calendars end it), has_started (an earlier attempt
-- began its task).
-- Keeps true: what lock_hints.sql says; a token is issued once; caps, lock keys (count_room.sql) and
-- calendars are read on a snapshot younger than the locks of lock_limits.sql. A run outside its windows
-- is held, and due at once for promotion, which knows when they open; one whose wave is not released,
-- or whose rollout is stopped, is held until its release sets a time.
WITH {runs/lock_hints}, gated AS (
    SELECT l.id, l.place, l.owner_id, o.slug, l.lock_key, l.priority, room.most,
        nullif(gate.until, 'infinity') - jobs_needed(l.policy) AS not_after, gate.soft_at, gate.hard_at,
        rollout.deadline_seconds IS NOT NULL AS has_new_deadline,
        CASE
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
), {runs/move_admitted}, announced AS (
    {runs/announce}
)
SELECT * FROM moved
UNION ALL
SELECT l.id,
    CASE
        WHEN NOT EXISTS (SELECT FROM node) THEN 'stale'
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
