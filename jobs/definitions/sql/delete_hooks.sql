-- The beginning of an UPDATE, for other statements: it marks webhooks as deleted, as the verb does.
-- Keeps true: retention deletes the deliveries, of which there may be millions, and the rows after them.
UPDATE jobs_webhookendpoint SET is_active = false, deleted_at = clock_timestamp(), job_id = NULL
