-- Enabled jobs whose schedule is broken: raw SQL left something out.
-- Parameters: owners bigint[] (NULL: all), crons and zones text[]: expressions that cannot be read,
--   side by side; most int.
-- Result: id.
-- Keeps true: the first half repeats the condition of the index job_broken, word for word, and its
--   order: PostgreSQL expects many broken jobs, and would read all jobs to find the first.
(SELECT id FROM jobs_job
 WHERE enabled AND (
        schedule NOT IN ('manual', 'once', 'interval', 'seconds', 'cron')
        OR schedule = 'once'
            AND (once_at IS NULL OR once_at <> date_bin('1 minute', once_at, to_timestamp(0)))
        OR schedule = 'seconds' AND (interval_seconds IS NULL OR interval_seconds < 1)
        OR schedule = 'interval'
            AND (interval_minutes IS NULL OR interval_minutes < 1 OR phase IS NULL OR shard IS NULL)
        OR schedule IN ('cron', 'once') AND smooth AND shard IS NULL)
    AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
 ORDER BY owner_id, key
 LIMIT %(most)s)
UNION ALL
(SELECT j.id FROM unnest(%(crons)s::text[], %(zones)s::text[]) AS bad(cron, zone)
 JOIN jobs_job AS j ON j.cron = bad.cron AND j.zone = bad.zone
    AND j.schedule || '' = 'cron' AND j.enabled
 WHERE %(owners)s::bigint[] IS NULL OR j.owner_id = ANY(%(owners)s::bigint[])
 LIMIT %(most)s)
