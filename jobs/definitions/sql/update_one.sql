-- Change one job if it is still as the caller has read it, and audit it.
-- Parameters: id bigint; seen timestamptz: its changed_at when it was read; row, actor_id, token_id
--   and actor_name as insert_one.sql takes them; changes json: names of the changed fields.
-- Result: one row: phase, shard, effective_from, changed_at, old_schedule. No row, and nothing
--   written, if another transaction has changed or deleted the job since it was read.
-- Keeps true: the place stays as long as the interval (or a smooth schedule's kind) does. A pause
--   belongs to operators and is not changed.
WITH given AS MATERIALIZED (
    SELECT n.*, j.schedule AS old_schedule, j.phase AS old_phase, j.shard AS old_shard,
        j.phase IS NOT NULL AND j.shard IS NOT NULL
            AND j.interval_minutes IS NOT DISTINCT FROM n.interval_minutes AS keeps,
        CASE WHEN n.schedule = 'interval' THEN n.interval_minutes WHEN n.smooth THEN 1 END AS minutes
    FROM json_populate_record(NULL::jobs_job, %(row)s::json) AS n
    JOIN jobs_job AS j ON j.id = %(id)s::bigint AND j.changed_at = %(seen)s::timestamptz
), placed AS MATERIALIZED (
    SELECT *, CASE WHEN minutes IS NOT NULL AND NOT keeps THEN
        {definitions/slot}
    END AS slot
    FROM given
), changed AS (
    UPDATE jobs_job j SET
        {definitions/assignments},
        phase = CASE WHEN minutes IS NULL THEN NULL WHEN keeps THEN old_phase ELSE slot / 120 END,
        shard = CASE WHEN minutes IS NULL THEN NULL WHEN keeps THEN old_shard ELSE slot %% 120 END
    FROM placed n
    -- After a wait for another writer's lock, PostgreSQL compares the row that this writer has stored.
    -- guard: a job is changed only as its caller has read it
    WHERE j.id = %(id)s::bigint AND j.changed_at = %(seen)s::timestamptz
    RETURNING j.id, j.owner_id, j.phase, j.shard, j.effective_from, j.changed_at, n.old_schedule
), audited AS (
    INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, %(actor_name)s::text, 'change', 'job', id::text,
        owner_id, '', jsonb_build_object('changes', %(changes)s::jsonb)
    FROM changed WHERE %(actor_name)s::text IS NOT NULL
)
SELECT phase, shard, effective_from, changed_at, old_schedule FROM changed
