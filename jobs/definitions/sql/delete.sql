-- Delete jobs, with the records of their missed times, their backfills, their attachments to calendars,
-- their alarms, and the mail subscriptions that name them; mark the webhooks that name them as deleted.
-- Parameters: ids bigint[]: jobs that are locked (lock_for_delete.sql, then lock_mails.sql); actor_id,
--   token_id bigint and actor_name text: who acts, for the audit of webhooks and mail subscriptions.
-- Result: a row per job that was deleted: id, schedule.
-- Keeps true: no transaction adds such records for a locked job, so this statement sees all of them.
--   Runs keep their history and the id of the job. A webhook loses no job while it is active: it would
--   tell of all jobs.
WITH missed AS (
    DELETE FROM jobs_missed WHERE job_id = ANY(%(ids)s)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id = ANY(%(ids)s)
), attached AS (
    DELETE FROM jobs_attachment WHERE job_id = ANY(%(ids)s)
), hooks AS (
    {definitions/delete_hooks} WHERE job_id = ANY(%(ids)s) RETURNING id, owner_id, name
), mails AS (
    DELETE FROM jobs_mailsubscription WHERE job_id = ANY(%(ids)s) RETURNING id, owner_id, name
), digests AS (
    DELETE FROM jobs_maildigest WHERE subscription_id IN (SELECT id FROM mails)
), alarms AS (
    DELETE FROM jobs_jobalarm WHERE job_id = ANY(%(ids)s)
), notices AS (
    {definitions/audit_notices}
)
DELETE FROM jobs_job WHERE id = ANY(%(ids)s) RETURNING id, schedule
