-- Move runs that no worker has, or ask workers to stop active ones.
-- Parameters: ids uuid[], sources text[] (states to move from), target text, cause text, is_fresh bool
-- (a new set of attempts begins; numbers continue), lease seconds.
-- Result: id of each run that was moved; the others were in another state.
-- Keeps true: a move and its entry in the history are one write.
WITH locked AS MATERIALIZED (
    SELECT id FROM {runs}
    WHERE id = ANY(%(ids)s) AND state = ANY(%(sources)s)
    ORDER BY id
    FOR UPDATE
), moved AS (
    UPDATE {runs} r SET
        state = %(target)s::text,
        blocked_by = '',
        queued_at = CASE WHEN %(target)s::text = 'queued' THEN clock_timestamp() ELSE r.queued_at END,
        hint_check_at = CASE WHEN %(target)s::text = 'queued'
            THEN clock_timestamp() + make_interval(secs => %(lease)s) ELSE r.hint_check_at END,
        ended_at = CASE WHEN %(target)s::text IN ('cancelled', 'expired', 'failed')
            THEN clock_timestamp() END,
        earlier_attempts = r.earlier_attempts + CASE WHEN %(is_fresh)s THEN r.attempt_count ELSE 0 END,
        attempt_count = CASE WHEN %(is_fresh)s THEN 0 ELSE r.attempt_count END,
        history = r.history || jsonb_build_array(jsonb_build_array(
            %(target)s::text, extract(epoch FROM clock_timestamp()), %(cause)s::text))
    FROM locked l
    WHERE r.id = l.id AND r.id = ANY(%(ids)s)
    RETURNING r.id, r.owner_id, r.submission_id, r.state, r.ended_at
), announced AS (
    {runs/announce}
)
SELECT id FROM moved
