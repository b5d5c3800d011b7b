-- A part of rollup_minute.sql: add one minute to the totals that metrics read.
-- Parameters, besides those of rollup_minute.sql: adds boolean: otherwise nothing is written; first_id and
-- end_id uuid: the ids of the minute; most int: owners that metrics name; queues text[]: the queues that
-- they name; stays float8: the part of a load that a minute leaves to the next; limits float8[]: of the
-- buckets of histograms, rising.
-- Keeps true: a total never falls, but for that of an owner which has lost its name: it begins anew. There
-- are totals of at most `most` owners, of the other owners together (0), and of all (-1).
-- Cost: a few aggregates of the rows that `ended` has, and the runs of the minute by their ids.
, made AS (
    SELECT owner_id, queue, count(*) AS count FROM jobs_run
    WHERE %(adds)s AND id >= %(first_id)s::uuid AND id < %(end_id)s::uuid
    GROUP BY owner_id, queue
), known AS (
    SELECT owner_id, queue, outcome, count(*)::float8 AS count, count(run)::float8 AS started,
        coalesce(sum(wait), 0)::float8 AS wait_seconds, coalesce(sum(run), 0)::float8 AS run_seconds
    FROM ended WHERE %(adds)s GROUP BY owner_id, queue, outcome
), ranked AS (
    SELECT owner_id, sum(load) AS load
    FROM (
        SELECT owner_id, count + run_seconds AS load FROM known
        UNION ALL SELECT owner_id, count FROM made
        UNION ALL SELECT owner_id, load * %(stays)s FROM jobs_metricowner WHERE %(adds)s
    ) AS loads
    GROUP BY owner_id ORDER BY load DESC, owner_id LIMIT %(most)s
), each AS (
    SELECT owner_id, queue, 'submitted' AS name, count::float8 AS value FROM made
    UNION ALL SELECT owner_id, queue, outcome, count FROM known
    UNION ALL SELECT owner_id, queue, 'started', started FROM known WHERE started > 0
    UNION ALL SELECT owner_id, queue, 'wait_seconds', wait_seconds FROM known WHERE started > 0
    UNION ALL SELECT owner_id, queue, 'run_seconds', run_seconds FROM known WHERE started > 0
    -- A value that equals a limit belongs below it, and width_bucket would put it above.
    UNION ALL SELECT owner_id, queue,
        'wait ' || width_bucket(wait::float8 - 1e-9, %(limits)s::float8[]), count(*)
    FROM ended WHERE %(adds)s AND run IS NOT NULL AND wait IS NOT NULL GROUP BY 1, 2, 3
    UNION ALL SELECT owner_id, queue,
        'run ' || width_bucket(run::float8 - 1e-9, %(limits)s::float8[]), count(*)
    FROM ended WHERE %(adds)s AND run IS NOT NULL GROUP BY 1, 2, 3
), added AS (
    SELECT CASE WHEN r.owner_id IS NULL THEN 0 ELSE e.owner_id END AS owner_id,
        CASE WHEN e.queue = ANY(%(queues)s::text[]) THEN e.queue ELSE '' END AS queue,
        e.name, sum(e.value) AS value
    FROM each AS e LEFT JOIN ranked AS r USING (owner_id)
    GROUP BY 1, 2, 3
    UNION ALL SELECT -1, '', name, sum(value) FROM each GROUP BY name
    UNION ALL SELECT -1, '', 'missed ' || reason, count(*) FROM jobs_missed
    WHERE %(adds)s AND created_at >= %(minute)s AND created_at < %(end)s GROUP BY reason
), totals AS (
    INSERT INTO jobs_metrictotal (owner_id, queue, name, value)
    SELECT owner_id, queue, name, value FROM added
    ON CONFLICT (owner_id, queue, name) DO UPDATE SET value = jobs_metrictotal.value + EXCLUDED.value
), named AS (
    INSERT INTO jobs_metricowner (owner_id, load) SELECT owner_id, load FROM ranked
    ON CONFLICT (owner_id) DO UPDATE SET load = EXCLUDED.load
), unnamed AS (
    DELETE FROM jobs_metricowner
    WHERE %(adds)s AND owner_id NOT IN (SELECT owner_id FROM ranked)
), dropped AS (
    DELETE FROM jobs_metrictotal
    WHERE %(adds)s AND owner_id > 0 AND owner_id NOT IN (SELECT owner_id FROM ranked)
)
