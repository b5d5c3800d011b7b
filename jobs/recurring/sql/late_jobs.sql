-- Jobs by interval or once that are due in a span of slots: when the span is one that should have
-- been triggered by now, these jobs are late.
-- Parameters: first_slot, end_slot bigint; after_job bigint: jobs up to it are done;
--   owners bigint[] (NULL: all); most int.
-- Result: id; a job may be there several times.
-- Keeps true: only due jobs are read, by the indexes of the ticks, and no more than are asked for.
--   OFFSET 0 keeps the planner from another way than asking the index for each interval and minute.
(SELECT due.id
 FROM jobs_intervals AS intervals
 CROSS JOIN LATERAL generate_series(
     %(first_slot)s::bigint / 120,
     least((%(end_slot)s::bigint - 1) / 120, %(first_slot)s::bigint / 120 + n)
 ) AS minute
 CROSS JOIN LATERAL (
     SELECT j.id, j.owner_id, minute * 120 + j.shard AS slot,
         j.effective_from, j.start_at, j.end_at, j.paused_until, j.paused_from
     FROM jobs_job AS j
     WHERE j.schedule || '' = 'interval' AND j.enabled AND j.interval_minutes = intervals.n
         AND j.phase = (minute %% intervals.n)::int
         AND j.shard >= greatest(%(first_slot)s::bigint - minute * 120, 0)::int
         AND j.shard <= least(%(end_slot)s::bigint - 1 - minute * 120, 119)::int
     OFFSET 0
 ) AS due
 CROSS JOIN LATERAL (SELECT to_timestamp(due.slot / 2.0) AS at) AS moment
 WHERE due.id > %(after_job)s
     AND (%(owners)s::bigint[] IS NULL OR due.owner_id = ANY(%(owners)s::bigint[]))
     AND due.effective_from <= moment.at
     AND (due.start_at IS NULL OR due.start_at <= moment.at)
     AND (due.end_at IS NULL OR due.end_at >= moment.at)
     AND (due.paused_until IS NULL OR due.paused_until <= moment.at
         OR due.paused_from > moment.at)
 LIMIT %(most)s)
UNION ALL
(SELECT id FROM jobs_job
 WHERE schedule || '' = 'once' AND enabled AND id > %(after_job)s
     AND once_at >= to_timestamp(%(first_slot)s / 2.0)
     AND once_at < to_timestamp(%(end_slot)s / 2.0)
     AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
     AND effective_from <= once_at
     AND (paused_until IS NULL OR paused_until <= once_at OR paused_from > once_at)
 LIMIT %(most)s)
