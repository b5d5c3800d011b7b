-- A condition: a run `r` may be removed, whose owner, if it still exists, is `o`.
-- Parameters: midnight; run_days, failed_run_days, key_days; open_submissions, an array of ids.
r.state IN ('succeeded', 'failed', 'cancelled', 'expired')
AND r.ended_at < %(midnight)s - 24 * make_interval(hours => greatest(
    %(key_days)s,
    coalesce(o.run_days, %(run_days)s),
    CASE WHEN r.state = 'failed' THEN coalesce(o.failed_run_days, %(failed_run_days)s) END))
-- guard: runs of a submission with open runs are not removed
AND (r.submission_id IS NULL OR r.submission_id <> ALL(%(open_submissions)s::bigint[]))
