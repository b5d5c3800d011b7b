-- Delete one job by its key, with the records that delete.sql deletes and marks; audit it.
-- Parameters: owner_id bigint, or slug text; key text; id, seen, actor_id, token_id and actor_name as
--   write_one.sql takes them; reason text.
-- Result: no row if there is no such owner. Else one: id and schedule of the job that was deleted, null
--   if there was none, or if another transaction has changed it since it was read.
-- Keeps true: a record that another transaction adds meanwhile violates a constraint at the commit:
--   then nothing is deleted, and the caller takes lock_for_delete.sql and delete.sql.
WITH own AS MATERIALIZED (
    SELECT id FROM jobs_owner WHERE id = coalesce(
        %(owner_id)s::bigint, (SELECT id FROM jobs_owner WHERE slug = %(slug)s::text))
), gone AS (
    DELETE FROM jobs_job j USING own
    WHERE j.owner_id = own.id AND j.key = %(key)s::text
      -- guard: a job is deleted only as its caller has read it
      AND (%(id)s::bigint IS NULL OR (j.id, j.changed_at) = (%(id)s::bigint, %(seen)s::timestamptz))
    RETURNING j.id, j.owner_id, j.schedule, coalesce(nullif(j.name, ''), j.key) AS title
), missed AS (
    DELETE FROM jobs_missed WHERE job_id IN (SELECT id FROM gone)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id IN (SELECT id FROM gone)
), attached AS (
    DELETE FROM jobs_attachment WHERE job_id IN (SELECT id FROM gone)
), hooks AS (
    {definitions/delete_hooks} WHERE job_id IN (SELECT id FROM gone) RETURNING id, owner_id, name
), mails AS (
    DELETE FROM jobs_mailsubscription WHERE job_id IN (SELECT id FROM gone) RETURNING id, owner_id, name
), digests AS (
    DELETE FROM jobs_maildigest WHERE subscription_id IN (SELECT id FROM mails)
), alarms AS (
    DELETE FROM jobs_jobalarm WHERE job_id IN (SELECT id FROM gone)
), notices AS (
    {definitions/audit_notices}
), audited AS (
    INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, %(actor_name)s::text, 'delete', 'job', id::text,
        owner_id, %(reason)s::text, jsonb_build_object('name', title)
    FROM gone WHERE %(actor_name)s::text IS NOT NULL
)
SELECT gone.id, gone.schedule FROM own LEFT JOIN gone ON true
