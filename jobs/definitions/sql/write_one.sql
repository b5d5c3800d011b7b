-- Make or change one job by its key where it differs from what is given, and audit it.
-- Parameters: owner_id bigint, or slug text; row json: an object by the names of columns, payload as
--   bytea in hex, and id: the job that the payload is encrypted for (null: it is not); creates, updates boolean: whether a job may be made, and one that is there changed;
--   id bigint and seen timestamptz: the job as the caller has read it, with its changed_at (null: as
--   it is now); changes json: names of the changed fields; actor_id, token_id bigint and actor_name
--   text (who acts; all null: no audit entry).
-- Result: no row if there is no such owner. Else one: owner_id, slug, is_found (the key was there),
--   found_id (of the job with this key), old_schedule, target_id, and of the job that was written id, is_new, phase, shard,
--   effective_from, created_at, changed_at, which are all null if nothing was written.
-- Keeps true: the place stays as long as the interval (or a smooth schedule's kind) does. A pause
--   belongs to operators and is not changed. A job that is equal is neither locked nor written. If
--   another transaction makes the job meanwhile, nothing is written, and is_found is false.
WITH given AS MATERIALIZED (
    SELECT n.*, o.id AS of_owner, o.slug, j.id AS job_id, j.schedule AS old_schedule,
        j.phase AS old_phase, j.shard AS old_shard, {definitions/keeps} AS keeps,
        CASE WHEN n.schedule = 'interval' THEN n.interval_minutes WHEN n.smooth THEN 1 END AS minutes,
        CASE WHEN j.id IS NULL THEN %(creates)s::boolean ELSE %(updates)s::boolean END AS may
    FROM json_populate_record(NULL::jobs_job, %(row)s::json) AS n
    JOIN jobs_owner AS o ON o.id = coalesce(
        %(owner_id)s::bigint, (SELECT id FROM jobs_owner WHERE slug = %(slug)s::text))
    -- OFFSET 0: one search by owner and key; a join reads all jobs of the owner.
    LEFT JOIN LATERAL (
        SELECT * FROM jobs_job WHERE owner_id = o.id AND key = n.key OFFSET 0
    ) AS j ON true
), placed AS MATERIALIZED (
    SELECT *, CASE WHEN may AND minutes IS NOT NULL AND NOT keeps THEN
        {definitions/slot}
    END AS slot
    FROM given
), made AS (
    INSERT INTO jobs_job (
        id, owner_id, key, {definitions/columns}, phase, shard, effective_from, created_at,
        changed_at)
    SELECT
        coalesce(id, nextval(pg_get_serial_sequence('jobs_job', 'id'))), of_owner, key, {definitions/columns}, slot / 120, slot %% 120,
        clock_timestamp(), clock_timestamp(), clock_timestamp()
    FROM placed WHERE job_id IS NULL AND may
    ON CONFLICT (owner_id, key) DO NOTHING
    RETURNING id, owner_id, phase, shard, effective_from, created_at, changed_at, true AS is_new
), changed AS (
    -- After a wait for another writer's lock, j is the row that this writer has stored: its interval
    -- and place may differ from those of `placed`.
    UPDATE jobs_job j SET
        {definitions/assignments},
        phase = CASE WHEN minutes IS NULL THEN NULL WHEN {definitions/keeps} THEN j.phase
            ELSE coalesce(slot / 120, old_phase) END,
        shard = CASE WHEN minutes IS NULL THEN NULL WHEN {definitions/keeps} THEN j.shard
            ELSE coalesce(slot %% 120, old_shard) END
    FROM placed n
    WHERE j.id = n.job_id AND may
      -- A job's arguments are encrypted for its id.
      AND (n.id IS NULL OR j.id = n.id)
      -- guard: a job is changed only as its caller has read it
      AND (%(id)s::bigint IS NULL OR (j.id, j.changed_at) = (%(id)s::bigint, %(seen)s::timestamptz))
      AND (%(id)s::bigint IS NOT NULL
           OR minutes IS NOT NULL AND (j.phase IS NULL OR j.shard IS NULL)
           OR {definitions/differs})
    RETURNING j.id, j.owner_id, j.phase, j.shard, j.effective_from, j.created_at, j.changed_at,
        false AS is_new
), written AS (
    SELECT * FROM made UNION ALL SELECT * FROM changed
), audited AS (
    INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, %(actor_name)s::text,
        CASE WHEN is_new THEN 'create' ELSE 'change' END, 'job', id::text, owner_id, '',
        CASE WHEN is_new THEN '{}' ELSE jsonb_build_object('changes', %(changes)s::jsonb) END
    FROM written WHERE %(actor_name)s::text IS NOT NULL
)
SELECT n.of_owner AS owner_id, n.slug, n.job_id IS NOT NULL AS is_found, n.job_id AS found_id,
    n.old_schedule, n.target_id,
    w.id, w.is_new, w.phase, w.shard, w.effective_from, w.created_at, w.changed_at
FROM placed AS n LEFT JOIN written AS w ON true
