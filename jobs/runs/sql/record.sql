-- Record what became of attempts, fenced by token.
-- Parameters: arrays, one element a run: ids, tokens, started_ages (seconds since the pool accepted it,
-- or null), kinds (null: only started), ended_ages (seconds), results; error_types, error_messages,
-- tracebacks, delays (seconds until the next attempt), causes: empty if no run has any; errors and
-- attempt_errors bytea[]: the texts of both, encrypted, which are empty then; key: that of errors and
-- results, 0 for none; lease seconds.
-- Result: a row per run that was moved: id, state now, owner_id, rollout_id (of a failed run whose rollout
-- is open), lock_key, is_capped; one with state 'busy' per run whose row another transaction has locked or
-- just changed: report it again.
-- Keeps true: only the newest token of an active run may write; a run that ends while `cancelling` is
-- cancelled, unless it succeeded; an attempt's row is written in the statement that moves its run; only
-- moves of jobs/core/states.py are made: a started run is not given back, a succeeded one has started.
-- An attempt that did nothing ('given back', 'not begun'), or snoozed its run, is not spent. One that reached its time limit
-- at the close of its window has that as its cause.
-- Cost: as admission; indexes of active runs contain all that were active since the last vacuum.
WITH report AS (
    SELECT p.id, p.token, p.started_age, p.kind, p.ended_age, p.result,
        coalesce(p.error_type, '') AS error_type, coalesce(p.error_message, '') AS error_message,
        coalesce(p.traceback, '') AS traceback, p.delay, coalesce(p.cause, '') AS cause,
        p.error, p.attempt_error
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::int[], %(started_ages)s::float8[], %(kinds)s::text[],
        %(ended_ages)s::float8[], %(results)s::bytea[], %(error_types)s::text[],
        %(error_messages)s::text[], %(tracebacks)s::text[], %(delays)s::float8[],
        %(causes)s::text[], %(errors)s::bytea[], %(attempt_errors)s::bytea[]
    ) AS p(id, token, started_age, kind, ended_age, result, error_type, error_message, traceback,
           delay, cause, error, attempt_error)
), locked AS MATERIALIZED (
    SELECT p.*, found.*
    FROM (SELECT * FROM report ORDER BY id) AS p
    LEFT JOIN LATERAL (
        SELECT r.ctid AS place, r.state AS before,
            -- Raw SQL may have written anything, and must not keep others from being recorded.
            CASE WHEN (r.history -> -1 -> 1) @? '$ ? (@.type() == "number" && @ > 0 && @ < 1e11)'
                THEN to_timestamp((r.history -> -1 ->> 1)::float8) END AS moved_at
        FROM {runs} r
        -- guard: only the newest token writes
        WHERE r.id = p.id AND r.token = p.token
          -- guard: what has ended is not written again
          AND r.state || '' IN ('admitted', 'running', 'cancelling')
          AND (p.kind IS DISTINCT FROM 'given back' OR r.state = 'cancelling'
               -- guard: what has started is not given back
               OR (r.state = 'admitted' AND p.started_age IS NULL))
          AND ({is_one_day} OR r.id = ANY(%(ids)s))
        FOR UPDATE SKIP LOCKED
    ) AS found ON true
), judged AS (
    -- Ages are by the worker's clock: clipped, so that no move is dated before the one before it.
    SELECT l.*,
        l.before = 'admitted' AND (l.started_age IS NOT NULL OR l.kind = 'succeeded') AS is_start,
        -- guard: a worker's ages are clipped
        greatest(now.at - make_interval(secs => l.started_age), l.moved_at) AS started_at,
        greatest(now.at - make_interval(secs => coalesce(l.ended_age, 0)),
                 now.at - make_interval(secs => l.started_age), l.moved_at) AS ended_at,
        CASE
            WHEN l.kind IS NULL THEN CASE l.before WHEN 'admitted' THEN 'running' ELSE l.before END
            -- guard: what ends while it is cancelled is cancelled
            WHEN l.before = 'cancelling' AND l.kind <> 'succeeded' THEN 'cancelled'
            WHEN l.kind = 'given back' THEN 'queued'
            ELSE l.kind
        END AS after
    FROM locked l
    CROSS JOIN (SELECT clock_timestamp() AS at) AS now
), moved AS (
    UPDATE {runs} r SET
        state = j.after,
        started_at = coalesce(
            r.started_at, CASE WHEN j.is_start OR j.started_age IS NOT NULL THEN j.started_at END),
        ended_at = CASE WHEN j.after IN ('succeeded', 'failed', 'cancelled')
            THEN j.ended_at END,
        next_at = CASE j.after WHEN 'retrying'
            THEN clock_timestamp() + make_interval(secs => coalesce(j.delay, 0)) ELSE r.next_at END,
        -- It has started before its deadline. Without an attempt that counts, it would expire.
        deadline_at = CASE WHEN j.cause = 'snoozed' THEN NULL ELSE r.deadline_at END,
        queued_at = CASE j.after WHEN 'queued' THEN clock_timestamp() ELSE r.queued_at END,
        hint_check_at = CASE j.after WHEN 'queued'
            THEN clock_timestamp() + make_interval(secs => %(lease)s) ELSE r.hint_check_at END,
        -- guard: an attempt that did nothing is not spent
        -- guard: what is given back has spent no attempt
        -- guard: a snooze spends no attempt
        attempt_count = r.attempt_count - (j.after = 'queued' OR j.cause IN ('not begun', 'snoozed'))::int,
        result = CASE j.after WHEN 'succeeded' THEN j.result ELSE r.result END,
        result_key = CASE j.after WHEN 'succeeded' THEN %(key)s ELSE r.result_key END,
        -- No attempt follows that would read it.
        checkpoint = CASE j.after WHEN 'succeeded' THEN NULL ELSE r.checkpoint END,
        error_type = CASE WHEN j.kind IS NULL THEN r.error_type ELSE j.error_type END,
        error_message = CASE WHEN j.kind IS NULL THEN r.error_message ELSE j.error_message END,
        error_data = CASE WHEN j.kind IS NULL THEN r.error_data ELSE j.error END,
        error_key = CASE WHEN j.kind IS NULL THEN r.error_key
            WHEN j.error IS NULL THEN 0 ELSE %(key)s END,
        history = r.history
            || CASE WHEN j.is_start
                THEN jsonb_build_array(jsonb_build_array(
                    'running', extract(epoch FROM j.started_at), ''))
                ELSE '[]' END
            || CASE WHEN j.kind IS NOT NULL
                THEN jsonb_build_array(jsonb_build_array(
                    j.after, extract(epoch FROM j.ended_at),
                    CASE WHEN j.cause = 'time limit' AND r.closes_at <= j.ended_at
                        THEN 'window closed' ELSE coalesce(nullif(j.cause, ''), j.error_type) END))
                ELSE '[]' END
    FROM judged j
    WHERE r.ctid = j.place
      AND ({is_one_day} OR r.id = j.id AND r.id = ANY(%(ids)s))
    RETURNING r.id, r.state, r.owner_id, r.lock_key, r.token, r.attempt_count, r.earlier_attempts,
        r.worker_id, r.queued_at, r.admitted_at, r.started_at, r.submission_id, r.ended_at,
        -- With the attempt's values: another join would search for each among all.
        j.kind, j.cause, j.ended_at AS attempt_ended_at, j.error_type AS attempt_error_type,
        j.error_message AS attempt_error_message, j.traceback, j.attempt_error
), tried AS (
    -- `recorded_at` is the moment of the insert: this transaction has its id by then, as the rollups need.
    INSERT INTO jobs_attempt (run_id, token, number, worker_id, outcome, admitted_at, started_at,
        ended_at, error_type, error_message, traceback, error_data, error_key, queued_at, run_state)
    SELECT m.id, m.token,
        -- An unspent attempt is no longer counted, and has the number of the next one.
        least(m.earlier_attempts + m.attempt_count
            + (m.state = 'queued' OR m.cause IN ('not begun', 'snoozed'))::int, 32767), m.worker_id,
        CASE
            WHEN m.state = 'cancelled' THEN 'cancelled'
            WHEN m.cause IN ('worker lost', 'child lost', 'time limit', 'snoozed') THEN m.cause
            ELSE m.kind
        END,
        m.admitted_at, m.started_at, m.attempt_ended_at,
        m.attempt_error_type, m.attempt_error_message, m.traceback, m.attempt_error,
        CASE WHEN m.attempt_error IS NULL THEN 0 ELSE %(key)s END,
        -- What was given back is queued anew.
        CASE WHEN m.state <> 'queued' THEN m.queued_at END, m.state
    FROM moved m
    WHERE m.kind IS NOT NULL
), announced AS (
    {runs/announce}
)
SELECT m.id, m.state, m.owner_id,
    CASE WHEN m.state = 'failed' THEN (
        SELECT x.submission_id FROM jobs_rollout x
        WHERE x.submission_id = m.submission_id AND x.state IN ('rolling', 'waiting')) END AS rollout_id,
    m.lock_key,
    (SELECT o.max_running IS NOT NULL FROM jobs_owner o WHERE o.id = m.owner_id) AS is_capped
FROM moved m
UNION ALL
SELECT l.id, 'busy', NULL, NULL, NULL, false
FROM locked l
WHERE l.id NOT IN (SELECT m.id FROM moved m)
  -- The token is current, but the row is locked, or was locked in a newer version than this statement
  -- sees. Not EXISTS, for which a plan may read all active runs.
  AND (
    SELECT true FROM {runs} r
    WHERE r.id = l.id AND r.token = l.token
      AND ({is_one_day} OR r.id = ANY(%(ids)s))
      AND r.state || '' IN ('admitted', 'running', 'cancelling')
      AND (l.kind IS DISTINCT FROM 'given back' OR r.state = 'cancelling'
           OR (r.state = 'admitted' AND l.started_age IS NULL))
)
