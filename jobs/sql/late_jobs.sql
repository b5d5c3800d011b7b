-- Jobs by interval or once that are due in a span of slots: when the span is one that should have
-- been triggered by now, these jobs are late.
-- Parameters: first_slot, end_slot bigint; after_job bigint: jobs up to it are done;
--   owners bigint[] (NULL: all); most int.
-- Result: id; a job may be there several times.
-- Keeps true: only due jobs are read, by the indexes of the ticks. Distinct intervals are few, and
-- the next one is looked up behind the one before.
WITH RECURSIVE intervals AS (
    (SELECT interval_minutes AS n FROM jobs_job
     WHERE schedule = 'interval' AND enabled AND interval_minutes > 0
     ORDER BY interval_minutes LIMIT 1)
    UNION ALL
    SELECT (SELECT j.interval_minutes FROM jobs_job AS j
            WHERE j.schedule = 'interval' AND j.enabled AND j.interval_minutes > i.n
            ORDER BY j.interval_minutes LIMIT 1)
    FROM intervals AS i WHERE i.n IS NOT NULL
), due AS (
    SELECT j.*, to_timestamp((m * 120 + j.shard) / 2.0) AS due_at
    FROM intervals AS i
    CROSS JOIN LATERAL generate_series(
        %(first_slot)s::bigint / 120,
        least((%(end_slot)s::bigint - 1) / 120, %(first_slot)s::bigint / 120 + i.n)
    ) AS m
    JOIN jobs_job AS j ON j.interval_minutes = i.n AND j.phase = m %% i.n
        AND j.schedule = 'interval' AND j.enabled
        AND m * 120 + j.shard >= %(first_slot)s AND m * 120 + j.shard < %(end_slot)s
    WHERE i.n IS NOT NULL
    UNION ALL
    SELECT j.*, j.once_at
    FROM jobs_job AS j
    WHERE j.schedule = 'once' AND j.enabled
        AND j.once_at >= to_timestamp(%(first_slot)s / 2.0)
        AND j.once_at < to_timestamp(%(end_slot)s / 2.0)
)
SELECT id FROM due
WHERE id > %(after_job)s
    AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
    AND effective_from <= due_at
    AND (start_at IS NULL OR start_at <= due_at) AND (end_at IS NULL OR due_at <= end_at)
    AND (paused_until IS NULL OR paused_until <= due_at)
LIMIT %(most)s
