-- Count what is stored under each encryption key.
-- Parameters: none.
-- Result: part (arguments, results, checkpoints, looks, errors, attempts, logs, jobs, webhooks, celery),
--   key (0: in clear), count.
-- Cost: reads all these tables.
SELECT part, key, count(*) AS count
FROM (
    SELECT each.part, each.key
    FROM jobs_run AS r
    CROSS JOIN LATERAL (VALUES
        ('arguments', r.payload_key),
        ('results', CASE WHEN r.result IS NOT NULL THEN r.result_key END),
        ('checkpoints', CASE WHEN r.checkpoint IS NOT NULL THEN r.checkpoint_key END),
        ('looks', CASE WHEN r.looks IS NOT NULL THEN r.looks_key END),
        ('errors', CASE WHEN r.error_data IS NOT NULL THEN r.error_key
            WHEN r.error_message <> '' THEN 0 END)
    ) AS each (part, key)
    UNION ALL
    SELECT 'attempts', CASE WHEN error_data IS NOT NULL THEN error_key
        WHEN error_message <> '' OR traceback <> '' THEN 0 END
    FROM jobs_attempt
    UNION ALL
    SELECT 'logs', key FROM jobs_log
    UNION ALL
    SELECT 'jobs', payload_key FROM jobs_job
    UNION ALL
    SELECT 'webhooks', secret_key FROM jobs_webhookendpoint WHERE deleted_at IS NULL
    UNION ALL
    SELECT 'webhooks', old_secret_key FROM jobs_webhookendpoint
    WHERE old_secret IS NOT NULL AND deleted_at IS NULL
    UNION ALL
    SELECT 'celery', coalesce(substring(result FROM '^\{"fairshift-encrypted": \[(\d+)')::smallint, 0)
    FROM django_celery_results_taskresult WHERE result IS NOT NULL AND result <> 'null'
) AS stored
WHERE key IS NOT NULL
GROUP BY part, key
ORDER BY part, key
