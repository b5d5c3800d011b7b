-- Count the failed runs of waves, and say which of them have a run that has not ended.
-- Parameters: submission bigint; firsts uuid[] and lasts uuid[]: the ids of each range of runs.
-- Result: a row for each range, in order: failed, is_open.
-- Cost: parts of one index of the submission's runs, by state: the failed ones, and one of each other state.
SELECT f.failed, EXISTS (
    SELECT FROM unnest(ARRAY[
        'queued', 'held', 'scheduled', 'retrying', 'admitted', 'running', 'cancelling']) AS u (state)
    CROSS JOIN LATERAL (
        SELECT FROM {runs} r
        WHERE r.submission_id = %(submission)s AND r.state = u.state AND r.id BETWEEN w.first AND w.last
        LIMIT 1) AS any_run
) AS is_open
FROM unnest(%(firsts)s::uuid[], %(lasts)s::uuid[]) WITH ORDINALITY AS w (first, last, number)
CROSS JOIN LATERAL (
    SELECT count(*) AS failed FROM {runs} r
    WHERE r.submission_id = %(submission)s AND r.state = 'failed' AND r.id BETWEEN w.first AND w.last
) AS f
ORDER BY w.number
