-- How fast the runs of a submission have ended within the last 10 seconds.
-- Parameters: submission bigint.
-- Result: one row: count of these ends; since (the first of them), now; later: how many were in the
--   second half of that time; queued: how many are queued, up to 100. Of the attempts that the queue
--   recorded in that time: received, the submission's part of the run time; took, the mean run time of
--   its runs; others_took, that of the other runs of each of the owners `others`. Null without any.
-- Keeps true: read by the index of a submission's runs; 2,000 attempts at most.
WITH ended AS MATERIALIZED (
    SELECT ended_at FROM jobs_run
    WHERE submission_id = %(submission)s AND state IN ('succeeded', 'failed')
        AND ended_at > clock_timestamp() - interval '10 seconds'
), times AS MATERIALIZED (
    SELECT count(*) AS count, min(ended_at) AS since, clock_timestamp() AS now FROM ended
), newest AS (
    SELECT run_id, extract(epoch FROM ended_at - started_at)::float8 AS took FROM jobs_attempt
    WHERE recorded_at > (SELECT since FROM times) AND started_at IS NOT NULL
    ORDER BY recorded_at DESC LIMIT 2000
)
SELECT times.count, times.since, times.now,
    (SELECT count(*) FROM ended WHERE ended_at > since + (times.now - since) / 2) AS later,
    (SELECT count(*) FROM (
        SELECT FROM jobs_run WHERE submission_id = %(submission)s AND state = 'queued' LIMIT 100
    ) AS few) AS queued,
    part.*
FROM times, LATERAL (
    SELECT sum(took) FILTER (WHERE is_own) / nullif(sum(took), 0) AS received,
        sum(took) FILTER (WHERE is_own) / nullif(sum(many) FILTER (WHERE is_own), 0) AS took,
        array_agg(slug) FILTER (WHERE NOT is_own) AS others,
        array_agg(took / many) FILTER (WHERE NOT is_own) AS others_took
    FROM (
        SELECT r.submission_id IS NOT DISTINCT FROM s.id AS is_own, o.slug, sum(took) AS took,
            count(*) AS many
        FROM jobs_submission AS s JOIN jobs_run AS r ON r.queue = s.queue
        JOIN newest ON newest.run_id = r.id JOIN jobs_owner AS o ON o.id = r.owner_id
        WHERE s.id = %(submission)s
        GROUP BY 1, 2
    ) AS each
) AS part
