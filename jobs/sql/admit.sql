-- Admit queued runs to one worker: the first of the two doors.
-- Parameters: ids uuid[], tasks text[] (each hint's run and task), worker uuid, lease seconds;
-- owners bigint[] and rooms bigint[] (how many more runs of a capped owner may run),
-- held_locks text[].
-- Result: a row per hint: id, verdict ('', 'expired', 'paused', 'lock', 'cap', 'busy', 'gone',
-- 'stale'), and for an admitted run what the worker needs to start it.
-- Keeps true: rows are locked in id order and rows that others hold are skipped; every time is
-- clock_timestamp(), read after the locks; a token is handed out once; a cap or a lock key is
-- counted (by room.sql) on a snapshot younger than the advisory locks of lock_limited.sql.
WITH hint AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(tasks)s::text[]) AS h(id, task)
), node AS (
    -- A worker that was frozen past its lease must beat before it may admit again.
    SELECT id FROM jobs_worker
    WHERE id = %(worker)s AND stopped_at IS NULL
      AND heartbeat_at > clock_timestamp() - make_interval(secs => %(lease)s)
), locked AS MATERIALIZED (
    SELECT r.id, r.owner_id, r.lock_key, r.priority, r.deadline_at, r.attempt_count
    FROM jobs_run r JOIN hint h ON h.id = r.id AND h.task = r.task
    WHERE r.id = ANY(%(ids)s) AND r.state = 'queued' AND EXISTS (SELECT FROM node)
    ORDER BY r.id
    FOR UPDATE OF r SKIP LOCKED
), gated AS (
    SELECT l.*, room.most,
        CASE
            WHEN l.deadline_at <= clock_timestamp() AND l.attempt_count = 0 THEN 'expired'
            WHEN o.paused_at IS NOT NULL
             AND (o.paused_until IS NULL OR o.paused_until > clock_timestamp()) THEN 'paused'
            WHEN l.lock_key <> '' AND (
                l.lock_key = ANY(%(held_locks)s::text[])
                OR row_number() OVER (PARTITION BY l.lock_key ORDER BY l.priority DESC, l.id) > 1
            ) THEN 'lock'
            ELSE ''
        END AS verdict
    FROM locked l
    JOIN jobs_owner o ON o.id = l.owner_id
    LEFT JOIN unnest(%(owners)s::bigint[], %(rooms)s::bigint[]) AS room(owner_id, most)
        ON room.owner_id = l.owner_id
), judged AS (
    SELECT g.id, g.most IS NOT NULL OR g.lock_key <> '' AS is_limited,
        CASE
            WHEN g.verdict = '' AND g.most IS NOT NULL
             AND count(*) FILTER (WHERE g.verdict = '') OVER (
                    PARTITION BY g.owner_id ORDER BY g.priority DESC, g.id) > g.most THEN 'cap'
            ELSE g.verdict
        END AS verdict
    FROM gated g
), moved AS (
    UPDATE jobs_run r SET
        state = CASE j.verdict WHEN '' THEN 'admitted' WHEN 'expired' THEN 'expired' ELSE r.state END,
        blocked_by = CASE WHEN j.verdict IN ('paused', 'lock', 'cap') THEN j.verdict ELSE '' END,
        token = r.token + (j.verdict = '')::int,
        attempt_count = r.attempt_count + (j.verdict = '')::int,
        worker_id = CASE j.verdict WHEN '' THEN %(worker)s ELSE r.worker_id END,
        admitted_at = CASE j.verdict WHEN '' THEN now.at ELSE r.admitted_at END,
        started_at = CASE j.verdict WHEN '' THEN NULL ELSE r.started_at END,
        ended_at = CASE j.verdict WHEN 'expired' THEN now.at ELSE r.ended_at END,
        history = CASE WHEN j.verdict IN ('', 'expired')
            THEN r.history || jsonb_build_array(jsonb_build_array(
                CASE j.verdict WHEN '' THEN 'admitted' ELSE 'expired' END,
                extract(epoch FROM now.at),
                CASE j.verdict WHEN '' THEN '' ELSE 'deadline passed' END))
            ELSE r.history END
    FROM judged j CROSS JOIN (SELECT clock_timestamp() AS at) AS now
    WHERE r.id = j.id AND r.id = ANY(%(ids)s)
    RETURNING r.id, j.verdict, j.is_limited, r.token, r.attempt_count, r.owner_id, r.job_id,
        r.submission_id, r.due_at, r.labels, r.policy, r.options, r.max_attempts, r.payload, r.payload_key
)
SELECT h.id,
    CASE
        WHEN m.id IS NOT NULL THEN m.verdict
        WHEN NOT EXISTS (SELECT FROM node) THEN 'stale'
        WHEN q.id IS NOT NULL THEN 'busy'
        ELSE 'gone'
    END AS verdict,
    m.is_limited, m.token, m.attempt_count, o.slug AS owner, m.job_id, m.submission_id, m.due_at,
    m.labels, m.policy, m.options, m.max_attempts, m.payload, m.payload_key
FROM hint h
LEFT JOIN moved m ON m.id = h.id
LEFT JOIN jobs_owner o ON o.id = m.owner_id
LEFT JOIN jobs_run q
    ON q.id = h.id AND q.task = h.task AND q.state = 'queued' AND q.id = ANY(%(ids)s)
