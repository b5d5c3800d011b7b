-- Delete jobs, with the records of their missed times, their backfills and their attachments to
-- calendars.
-- Parameters: ids bigint[]: jobs that are locked (lock_for_delete.sql).
-- Result: a row per job that was deleted: id, schedule.
-- Keeps true: no transaction adds such records for a locked job, so this statement sees all of them.
--   Runs keep their history and the id of the job.
WITH missed AS (
    DELETE FROM jobs_missed WHERE job_id = ANY(%(ids)s)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id = ANY(%(ids)s)
), attached AS (
    DELETE FROM jobs_attachment WHERE job_id = ANY(%(ids)s)
)
DELETE FROM jobs_job WHERE id = ANY(%(ids)s) RETURNING id, schedule
