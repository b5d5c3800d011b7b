-- Mark the submissions that have come to their end since a listener was last told of it.
-- Parameters: listener text; submissions bigint[] and recorded timestamptz[]: of each submission, when the
-- newest end that was taken was recorded; open_states text[].
-- Result: the id of each submission that has ended and whose end is new.
-- Keeps true: an end that was recorded before the moment of the last mark was counted in that mark: a run
-- that was queued again since can only have ended later. A submission whose runs have all ended, and that
-- a backfill may still add to, is looked at again by each call.
-- Cost: a look into run_of_submission, in each partition, for each submission.
WITH candidate AS (
    SELECT id, max(recorded_at) AS recorded_at
    FROM unnest(%(submissions)s::bigint[], %(recorded)s::timestamptz[]) AS given(id, recorded_at)
    GROUP BY id
    UNION ALL
    SELECT submission_id, NULL FROM jobs_endmark
    WHERE listener = %(listener)s AND waits AND submission_id <> ALL(%(submissions)s::bigint[])
), done AS (
    SELECT c.id, EXISTS (
            SELECT FROM jobs_backfill b WHERE b.submission_id = c.id AND b.done_at IS NULL) AS waits
    FROM candidate c
    LEFT JOIN jobs_endmark m ON m.listener = %(listener)s AND m.submission_id = c.id
    -- guard: an end that was announced is not announced again
    WHERE (m.checked_at IS NULL OR m.waits OR c.recorded_at > m.checked_at)
      AND NOT EXISTS (
        SELECT FROM jobs_run r WHERE r.submission_id = c.id AND r.state = ANY(%(open_states)s))
), marked AS (
    INSERT INTO jobs_endmark AS m (listener, submission_id, checked_at, waits)
    SELECT %(listener)s, d.id, statement_timestamp(), d.waits FROM done d
    ON CONFLICT (listener, submission_id)
        DO UPDATE SET checked_at = excluded.checked_at, waits = excluded.waits
    RETURNING m.submission_id, m.waits
)
SELECT submission_id AS id FROM marked WHERE NOT waits ORDER BY submission_id
