-- Delete jobs, with the records of their missed times, their backfills, their attachments to calendars,
-- their alarms, and the webhooks and mail subscriptions that name them.
-- Parameters: ids bigint[]: jobs that are locked (lock_for_delete.sql, then lock_notices.sql).
-- Result: a row per job that was deleted: id, schedule.
-- Keeps true: no transaction adds such records for a locked job, so this statement sees all of them.
--   Runs keep their history and the id of the job. A webhook loses no job: it would tell of all jobs.
WITH missed AS (
    DELETE FROM jobs_missed WHERE job_id = ANY(%(ids)s)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id = ANY(%(ids)s)
), attached AS (
    DELETE FROM jobs_attachment WHERE job_id = ANY(%(ids)s)
), hooks AS (
    DELETE FROM jobs_webhookendpoint WHERE job_id = ANY(%(ids)s) RETURNING id
), deliveries AS (
    DELETE FROM jobs_webhookdelivery WHERE endpoint_id IN (SELECT id FROM hooks)
), mails AS (
    DELETE FROM jobs_mailsubscription WHERE job_id = ANY(%(ids)s) RETURNING id
), digests AS (
    DELETE FROM jobs_maildigest WHERE subscription_id IN (SELECT id FROM mails)
), alarms AS (
    DELETE FROM jobs_jobalarm WHERE job_id = ANY(%(ids)s)
)
DELETE FROM jobs_job WHERE id = ANY(%(ids)s) RETURNING id, schedule
