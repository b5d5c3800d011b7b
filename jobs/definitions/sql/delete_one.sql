-- Delete one job if it is still as the caller has read it, with the records that delete.sql deletes;
-- audit it.
-- Parameters: id bigint; seen timestamptz; actor_id, token_id, actor_name as insert_one.sql takes them.
-- Result: one row: schedule. No row, and nothing deleted, if another transaction has changed or
--   deleted the job since it was read.
-- Keeps true: a record that another transaction adds meanwhile violates a constraint at the commit:
--   then nothing is deleted, and the caller takes lock_for_delete.sql and delete.sql.
WITH gone AS (
    DELETE FROM jobs_job WHERE id = %(id)s::bigint AND changed_at = %(seen)s::timestamptz
    RETURNING id, owner_id, schedule, coalesce(nullif(name, ''), key) AS title
), missed AS (
    DELETE FROM jobs_missed WHERE job_id IN (SELECT id FROM gone)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id IN (SELECT id FROM gone)
), attached AS (
    DELETE FROM jobs_attachment WHERE job_id IN (SELECT id FROM gone)
), audited AS (
    INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, %(actor_name)s::text, 'delete', 'job', id::text,
        owner_id, '', jsonb_build_object('name', title)
    FROM gone WHERE %(actor_name)s::text IS NOT NULL
)
SELECT schedule FROM gone
