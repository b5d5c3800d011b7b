-- A part of the statements that admit: write the verdicts of the CTE `judged`, of the moment `now`.
moved AS (
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
    WHERE r.ctid = j.place
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
)
