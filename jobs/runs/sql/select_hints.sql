-- Read the hints of queued runs.
-- Parameters: ids uuid[].
-- Result: a row per queued run, by priority, then the shortest need of an opening, then id: run_id, task,
-- queue, owner (its slug), submission, attempt and token of the next admission, priority,
-- not_after_seconds (null for none), delay_seconds: 0, or negative for how long it has waited before.
-- Keeps true: a run that was given back, or whose worker was lost, keeps its place: it waits since it
-- was queued, with only admissions and such losses since.
SELECT r.id::text AS run_id, r.task, r.queue, o.slug AS owner, r.submission_id AS submission,
    r.attempt_count + 1 AS attempt, r.priority, r.token + 1 AS token,
    extract(epoch FROM r.not_after - clock_timestamp())::float8 AS not_after_seconds,
    coalesce(CASE WHEN r.history -> -2 ->> 0 = 'admitted' OR r.history -> -2 ->> 2 = 'worker lost' THEN (
        -- Raw SQL may have written anything, and must not keep other runs from their hints.
        SELECT CASE WHEN (q.move -> 1) @? '$ ? (@.type() == "number" && @ > 0 && @ < 1e11)'
            THEN (q.move ->> 1)::float8 - extract(epoch FROM clock_timestamp())::float8 END
        FROM jsonb_array_elements(r.history) WITH ORDINALITY AS q(move, at)
        CROSS JOIN LATERAL (SELECT CASE WHEN q.at > 1 THEN r.history -> (q.at - 2)::int END) AS p(move)
        WHERE q.move ->> 0 = 'queued'
            -- guard: what is given back keeps its place
            AND p.move ->> 0 IS DISTINCT FROM 'admitted'
            -- guard: a run whose worker was lost keeps its place
            AND p.move ->> 2 IS DISTINCT FROM 'worker lost'
        ORDER BY q.at DESC LIMIT 1
    ) END, 0) AS delay_seconds
FROM {runs} r JOIN jobs_owner o ON o.id = r.owner_id
-- guard: only queued runs are published
WHERE r.id = ANY(%(ids)s) AND r.state = 'queued'
ORDER BY r.priority DESC, CASE WHEN r.not_after IS NOT NULL THEN jobs_needed(r.policy) END NULLS FIRST, r.id
