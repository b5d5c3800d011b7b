-- Count the attempts that were recorded in a span.
-- Parameters: start and end timestamptz (end not included).
-- Result: a row with the count.
-- Cost: the attempts of the span, by attempt_recorded.
SELECT count(*) AS count FROM jobs_attempt
WHERE recorded_at >= %(start)s AND recorded_at < %(end)s AND run_state NOT IN ('', 'queued')
    AND started_at IS NOT NULL AND queued_at IS NOT NULL
