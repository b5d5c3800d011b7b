-- The jobs in seconds whose PeriodicTask of django-celery-beat differs, and PeriodicTasks without such a job.
-- Parameters: ids bigint[]: the jobs to compare; NULL: all.
-- Result: id of each job; interval_seconds, start_at, end_at and enabled as its PeriodicTask is to
-- have them, all NULL when there is to be none.
-- Keeps true: a PeriodicTask is off once its job's end has passed, as celery-beat does it.
WITH wanted AS (
    SELECT id, 'fairshift job ' || id AS name, interval_seconds, start_at, end_at,
        enabled AND (end_at IS NULL OR end_at > clock_timestamp()) AS enabled
    FROM jobs_job
    WHERE schedule = 'seconds' AND interval_seconds > 0
      AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[]))
), present AS (
    SELECT t.name, t.task, t.args, t.enabled, t.one_off, t.start_time, t.expires, i.every, i.period
    FROM django_celery_beat_periodictask AS t
    LEFT JOIN django_celery_beat_intervalschedule AS i ON i.id = t.interval_id
    WHERE t.name ~ '^fairshift job [1-9][0-9]{0,17}$'
      AND (%(ids)s::bigint[] IS NULL
           OR t.name = ANY(SELECT 'fairshift job ' || id FROM unnest(%(ids)s::bigint[]) AS id))
)
SELECT coalesce(w.id, substring(p.name FROM '[0-9]+$')::bigint) AS id,
    w.interval_seconds, w.start_at, w.end_at, w.enabled
FROM wanted AS w FULL JOIN present AS p ON p.name = w.name
WHERE (p.task, p.args, p.enabled, p.one_off, p.start_time, p.expires, p.every, p.period)
    IS DISTINCT FROM ('fairshift.system.fire'::varchar, '[' || w.id || ']', w.enabled, false,
        w.start_at, w.end_at, w.interval_seconds, 'seconds'::varchar)
