-- Lock the mail subscriptions that name jobs.
-- Parameters: ids bigint[]: jobs that are locked (lock_for_delete.sql).
-- Result: a row per subscription: id.
-- Keeps true: no transaction adds a digest to them, so delete.sql sees all of them.
SELECT id FROM jobs_mailsubscription WHERE job_id = ANY(%(ids)s) ORDER BY id FOR UPDATE
