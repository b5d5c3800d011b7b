-- Make the row of the position if it is missing: at the first attempt that the rollups can count.
-- Parameters: none.
-- Result: none.
INSERT INTO jobs_rollupposition (id, final_until, counted_until)
SELECT 1, first.minute, first.minute
FROM (
    SELECT date_trunc('minute', least(min(recorded_at), clock_timestamp())) AS minute FROM jobs_attempt
) AS first
WHERE NOT EXISTS (SELECT FROM jobs_rollupposition)
ON CONFLICT (id) DO NOTHING
