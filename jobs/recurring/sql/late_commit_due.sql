-- Due times that their ticks could not see, of jobs that were written while the ticks passed.
-- Parameters: seen, before pg_snapshot: the jobs are those that this round sees and the one before
--   did not; first_slot, end_slot bigint; kind text: of the ticks; crons, zones text[], minutes
--   bigint[], side by side: the minutes (since 1970) for which an expression is due.
-- Result: the fields of `Due` (due.py), by id.
-- Keeps true: a tick without a snapshot has not begun and will see these jobs itself. A tick and
--   this round may both trigger a due time, never neither.
WITH changed AS MATERIALIZED (
    SELECT j.*, greatest(
        %(first_slot)s::bigint, floor(extract(epoch FROM j.effective_from) * 2)::bigint) / 120 AS first
    FROM jobs_job AS j
    WHERE j.changed_xid >= pg_snapshot_xmin(%(before)s::pg_snapshot)
        AND NOT pg_visible_in_snapshot(j.changed_xid, %(before)s::pg_snapshot)
        AND pg_visible_in_snapshot(j.changed_xid, %(seen)s::pg_snapshot)
        AND j.enabled
), times AS (
    SELECT c.id, minute * 120 + c.shard AS slot, minute * 120 + c.shard AS at
    FROM changed AS c, generate_series(c.first, (%(end_slot)s::bigint - 1) / 120) AS minute
    WHERE c.schedule = 'interval' AND c.interval_minutes > 0
        AND (minute - c.phase) %% nullif(c.interval_minutes, 0) = 0
    UNION ALL
    SELECT c.id, m.slot, m.slot + CASE WHEN c.smooth THEN c.shard ELSE 0 END
    FROM changed AS c, LATERAL (SELECT floor(extract(epoch FROM c.once_at) * 2)::bigint AS slot) AS m
    WHERE c.schedule = 'once'
    UNION ALL
    SELECT c.id, m.minute * 120, m.minute * 120 + CASE WHEN c.smooth THEN c.shard ELSE 0 END
    FROM unnest(%(crons)s::text[], %(zones)s::text[], %(minutes)s::bigint[])
        AS m (cron, zone, minute)
    JOIN changed AS c ON c.cron = m.cron AND c.zone = m.zone AND c.schedule = 'cron'
)
SELECT due.id, times.slot, due.history_policy, due.overlap, o.slug,
    due.task, due.queue, due.priority, due.lock_key
FROM times
JOIN changed AS due ON due.id = times.id
JOIN jobs_owner AS o ON o.id = due.owner_id
CROSS JOIN LATERAL (
    SELECT t.first_slot, t.seen, t.kind FROM jobs_tick AS t
    WHERE t.end_slot > times.at AND t.kind <> 'held' ORDER BY t.end_slot LIMIT 1
) AS tick
CROSS JOIN LATERAL (SELECT to_timestamp(times.slot / 2.0) AS at) AS moment
WHERE times.at >= %(first_slot)s AND times.at < %(end_slot)s AND tick.first_slot <= times.at
    AND tick.kind = %(kind)s
    -- guard: due times: what a tick has seen is not triggered again
    AND NOT pg_visible_in_snapshot(due.changed_xid, tick.seen)
    AND {recurring/is_due}
ORDER BY due.id, times.slot
