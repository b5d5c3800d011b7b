-- The slot before which all due times are handled, and whether some are still open.
-- Parameters: none.
-- Result: one row: slot (the cursor's; null before the first pulse), is_open.
-- Keeps true: due times are open while a tick is not done, and while a job became visible after the last
--   round of late commits, and takes effect before the cursor.
SELECT c.slot, c.slot IS NOT NULL AND (
    EXISTS (SELECT FROM jobs_tick WHERE done_at IS NULL)
    OR EXISTS (
        SELECT FROM jobs_job AS j
        WHERE j.changed_xid >= pg_snapshot_xmin(c.again_seen)
            AND NOT pg_visible_in_snapshot(j.changed_xid, c.again_seen)
            AND j.enabled AND j.schedule IN ('interval', 'cron', 'once')
            AND j.effective_from < to_timestamp(c.slot / 2.0))
) AS is_open
FROM (SELECT 1) AS always
LEFT JOIN (SELECT slot, again_seen FROM jobs_cursor ORDER BY id LIMIT 1) AS c ON true
