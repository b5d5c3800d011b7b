-- Mend PeriodicTasks that are not in step with their jobs, as after somebody has edited them.
-- Parameters: none.
-- Result: id of each job whose PeriodicTask was made, mended or taken away.
-- Keeps true: what is in step is not written.
WITH wanted AS (
    SELECT id, interval_seconds, start_at, end_at,
        enabled AND (end_at IS NULL OR end_at > clock_timestamp()) AS enabled
    FROM jobs_job WHERE schedule = 'seconds' AND interval_seconds > 0
), stray AS MATERIALIZED (
    SELECT w.id
    FROM wanted AS w
    LEFT JOIN django_celery_beat_periodictask AS t ON t.name = 'fairshift job ' || w.id
    LEFT JOIN django_celery_beat_intervalschedule AS i ON i.id = t.interval_id
    WHERE (t.task, t.args, t.enabled, t.one_off, t.start_time, t.expires, i.every, i.period)
        IS DISTINCT FROM ('fairshift.system.fire'::varchar, '[' || w.id || ']', w.enabled, false,
            w.start_at, w.end_at, w.interval_seconds, 'seconds'::varchar)
    UNION ALL
    SELECT substring(t.name FROM '[0-9]+$')::bigint
    FROM django_celery_beat_periodictask AS t
    WHERE t.name ~ '^fairshift job [0-9]{1,18}$'
      AND NOT EXISTS (SELECT FROM wanted AS w WHERE t.name = 'fairshift job ' || w.id)
)
SELECT id, jobs_keep_in_step(id)::text AS kept FROM stray
