-- Make one job, and audit it.
-- Parameters: row json: an object by the names of columns, payload as bytea in hex; actor_id,
--   token_id bigint, actor_name text (who acts; all null: no audit entry).
-- Result: one row: id, slug (of the owner), phase, shard, effective_from, created_at, changed_at.
--   No row, and nothing stored, if the owner has a job of this key, or does not exist.
WITH given AS MATERIALIZED (
    SELECT n.*, o.slug,
        CASE WHEN n.schedule = 'interval' THEN n.interval_minutes WHEN n.smooth THEN 1 END AS minutes
    FROM json_populate_record(NULL::jobs_job, %(row)s::json) AS n JOIN jobs_owner o ON o.id = n.owner_id
), placed AS MATERIALIZED (
    SELECT *, CASE WHEN minutes IS NOT NULL THEN
        {definitions/slot}
    END AS slot
    FROM given
), made AS (
    INSERT INTO jobs_job (
        owner_id, key, {definitions/columns}, phase, shard, effective_from, created_at, changed_at)
    SELECT
        owner_id, key, {definitions/columns}, slot / 120, slot %% 120,
        clock_timestamp(), clock_timestamp(), clock_timestamp()
    FROM placed
    ON CONFLICT (owner_id, key) DO NOTHING
    RETURNING id, owner_id, phase, shard, effective_from, created_at, changed_at
), audited AS (
    INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, %(actor_name)s::text, 'add', 'job', id::text,
        owner_id, '', '{}'
    FROM made WHERE %(actor_name)s::text IS NOT NULL
)
SELECT made.id, given.slug, made.phase, made.shard, made.effective_from, made.created_at,
    made.changed_at
FROM made CROSS JOIN given
