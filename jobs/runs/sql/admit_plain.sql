-- Admit queued runs without limits that may start now. All others are left to admit.sql, under locks.
-- Parameters: ids uuid[], tasks text[], tokens bigint[], worker uuid, lease seconds, keys smallint[], as in
-- admit.sql.
-- Result: a row per admitted run, as of admit.sql. What is not admitted is unchanged.
-- Cost: as lock_hints.sql; for one run 0.6 ms with its commit, where admit.sql takes 0.8.
WITH {runs/lock_hints}, judged AS (
    SELECT l.id, l.place, o.slug, '' AS verdict, false AS is_limited, false AS has_new_deadline,
        NULL::timestamptz AS not_after, NULL::timestamptz AS soft_at, NULL::timestamptz AS hard_at
    FROM locked l
    CROSS JOIN now
    CROSS JOIN LATERAL (
        SELECT slug, paused_at, paused_until, calendar_version, max_running FROM jobs_owner
        WHERE id = l.owner_id OFFSET 0
    ) AS o
    -- guard: what is limited is decided under its locks
    WHERE o.max_running IS NULL AND o.calendar_version = 0 AND l.lock_key = '' AND l.window_policy = ''
      -- guard: a run of a rollout is decided under its locks
      AND (SELECT true FROM jobs_rollout x WHERE x.submission_id = l.submission_id) IS NULL
      -- guard: a run of a paused owner is not admitted
      AND (o.paused_at IS NULL OR o.paused_until <= now.at)
      -- guard: a run past its deadline is not admitted
      AND (l.deadline_at <= now.at AND l.attempt_count = 0) IS NOT TRUE
      -- guard: a run whose key is missing is not admitted
      AND (l.payload_key = 0 OR l.payload_key = ANY(%(keys)s::smallint[]))
), {runs/move_admitted}
SELECT * FROM moved
