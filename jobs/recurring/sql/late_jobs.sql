-- Jobs by interval or once that are due in a span of slots: late ones, when the span is past.
-- Parameters: first_slot, end_slot bigint; after_job bigint: jobs up to it are done;
--   owners bigint[] (NULL: all); most int.
-- Result: id; a job may be there several times.
-- Keeps true: only due jobs are read, by the indexes that ticks use, `most` of them at most.
--   OFFSET 0 makes the planner ask the index for each interval and minute.
(SELECT due.id
 FROM jobs_intervals AS intervals
 CROSS JOIN LATERAL generate_series(
     %(first_slot)s::bigint / 120,
     least((%(end_slot)s::bigint - 1) / 120, %(first_slot)s::bigint / 120 + n)
 ) AS minute
 CROSS JOIN LATERAL (
     SELECT j.*, minute * 120 + j.shard AS slot FROM jobs_job AS j
     WHERE j.schedule || '' = 'interval' AND j.enabled AND j.interval_minutes = intervals.n
         AND j.phase = (minute %% intervals.n)::int
         AND j.shard >= greatest(%(first_slot)s::bigint - minute * 120, 0)::int
         AND j.shard <= least(%(end_slot)s::bigint - 1 - minute * 120, 119)::int
     OFFSET 0
 ) AS due
 CROSS JOIN LATERAL (SELECT to_timestamp(due.slot / 2.0) AS at) AS moment
 WHERE due.id > %(after_job)s
     AND (%(owners)s::bigint[] IS NULL OR due.owner_id = ANY(%(owners)s::bigint[]))
     AND {recurring/is_due}
 LIMIT %(most)s)
UNION ALL
(SELECT due.id
 FROM jobs_job AS due
 CROSS JOIN LATERAL (SELECT due.once_at AS at) AS moment
 WHERE due.schedule || '' = 'once' AND due.enabled AND due.id > %(after_job)s
     AND due.once_at >= to_timestamp(%(first_slot)s / 2.0)
     AND due.once_at < to_timestamp(%(end_slot)s / 2.0)
     AND (%(owners)s::bigint[] IS NULL OR due.owner_id = ANY(%(owners)s::bigint[]))
     AND {recurring/is_due}
 LIMIT %(most)s)
