-- Lock the webhooks and mail subscriptions that name jobs.
-- Parameters: ids bigint[]: jobs that are locked (lock_for_delete.sql).
-- Result: one row: hooks, mails: how many are locked.
-- Keeps true: no transaction adds a delivery or a digest to them, so delete.sql sees all of them.
WITH hooks AS MATERIALIZED (
    SELECT id FROM jobs_webhookendpoint WHERE job_id = ANY(%(ids)s) ORDER BY id FOR UPDATE
), mails AS MATERIALIZED (
    SELECT id FROM jobs_mailsubscription WHERE job_id = ANY(%(ids)s) ORDER BY id FOR UPDATE
)
SELECT (SELECT count(*) FROM hooks) AS hooks, (SELECT count(*) FROM mails) AS mails
