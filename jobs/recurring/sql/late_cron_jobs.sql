-- Jobs of cron expressions that are due in a span of slots: late ones, when the span is past.
-- Parameters: crons, zones text[]: the expressions that were due, side by side; first_slot, end_slot
--   bigint; after_job bigint: jobs up to it are done; owners bigint[] (NULL: all); most int.
-- Result: id.
-- Keeps true: read by the index that ticks use. A job that changed within the span may be missing.
SELECT j.id FROM unnest(%(crons)s::text[], %(zones)s::text[]) AS due(cron, zone)
JOIN jobs_job AS j ON j.cron = due.cron AND j.zone = due.zone
    AND j.schedule || '' = 'cron' AND j.enabled
WHERE j.id > %(after_job)s
    AND (%(owners)s::bigint[] IS NULL OR j.owner_id = ANY(%(owners)s::bigint[]))
    AND j.effective_from <= to_timestamp(%(first_slot)s / 2.0)
    AND (j.start_at IS NULL OR j.start_at <= to_timestamp(%(first_slot)s / 2.0))
    AND (j.end_at IS NULL OR j.end_at >= to_timestamp(%(end_slot)s / 2.0))
    AND (j.paused_until IS NULL OR j.paused_until <= to_timestamp(%(first_slot)s / 2.0)
        OR j.paused_from > to_timestamp(%(end_slot)s / 2.0))
LIMIT %(most)s
