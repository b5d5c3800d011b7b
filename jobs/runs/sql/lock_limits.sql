-- Take, in one order, the advisory locks of the owners with a cap and of the lock keys of the requested
-- runs: two workers that count the same runs do so one after the other. Admissions share the lock of an
-- owner with calendars, and of a rollout; a change of a calendar, or a stop, takes it alone, so that
-- later admissions see the change.
-- A statement of its own, because counting needs a snapshot younger than the locks. Also for runs that
-- are not queued: they may be when they are admitted.
-- Parameters: ids uuid[].
-- Result: a row per limit: owner_id or lock_key; neither for an owner with calendars, and for a rollout.
SELECT limited.owner_id, limited.lock_key, CASE WHEN limited.space IN (1722, 1726)
    THEN pg_advisory_xact_lock_shared(limited.space, limited.key)
    -- guard: who counts under a cap waits for who counts before it
    ELSE pg_advisory_xact_lock(limited.space, limited.key) END
FROM (
    SELECT DISTINCT wanted.owner_id, wanted.lock_key, wanted.space, hashtext(wanted.name) AS key
    FROM unnest(%(ids)s::uuid[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT r.owner_id, r.lock_key, r.submission_id FROM {runs} r
        WHERE r.id = asked.id
          AND ({is_one_day} OR r.id = ANY(%(ids)s))
        OFFSET 0
    ) AS r
    CROSS JOIN LATERAL (
        SELECT id, slug, calendar_version, max_running FROM jobs_owner
        WHERE id = r.owner_id OFFSET 0
    ) AS o
    CROSS JOIN LATERAL (VALUES
        -- guard: an admission waits for who changes its owner's calendars
        (NULL::bigint, NULL::text, 1722, CASE WHEN o.calendar_version > 0 THEN o.slug END),
        -- guard: an admission waits for who stops its rollout
        (NULL, NULL, 1726, (SELECT x.submission_id::text FROM jobs_rollout x WHERE x.submission_id = r.submission_id)),
        (o.id, NULL, 1718, CASE WHEN o.max_running IS NOT NULL THEN o.slug END),
        (NULL, r.lock_key, 1719, NULLIF(r.lock_key, ''))
    ) AS wanted(owner_id, lock_key, space, name)
    WHERE wanted.name IS NOT NULL
    ORDER BY wanted.space, key
) AS limited
