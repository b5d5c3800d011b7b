-- Ticks of one job each, for jobs that other transactions have locked.
-- Parameters: job_ids, first_slots, end_slots bigint[], side by side.
-- Result: none.
-- Keeps true: a job has one open tick for a first slot, however often this is repeated.
INSERT INTO jobs_tick (first_slot, end_slot, kind, after_job, created_at, sent_at)
SELECT held.first_slot, held.end_slot, 'held', held.job_id - 1, clock_timestamp(), clock_timestamp()
FROM unnest(%(job_ids)s::bigint[], %(first_slots)s::bigint[], %(end_slots)s::bigint[])
    AS held (job_id, first_slot, end_slot)
WHERE NOT EXISTS (
    SELECT FROM jobs_tick AS t
    WHERE t.done_at IS NULL AND t.kind = 'held'
        AND t.after_job = held.job_id - 1 AND t.first_slot = held.first_slot)
