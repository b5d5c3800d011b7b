-- End one open run that no other statement can move, since raw SQL has spoilt its row.
-- Parameters: id uuid; type and message text: the error; data bytea and key smallint: the message
-- encrypted, which is empty then.
-- Result: id, state, if it was open.
-- Keeps true: nothing that raw SQL can have spoilt is read or computed with; no attempt is written.
WITH moved AS (
    UPDATE jobs_run r SET
        state = next.state,
        blocked_by = '',
        ended_at = next.at,
        error_type = %(type)s, error_message = %(message)s,
        error_data = %(data)s, error_key = %(key)s,
        history = CASE jsonb_typeof(r.history) WHEN 'array' THEN r.history ELSE '[]' END
            || jsonb_build_array(jsonb_build_array(
                next.state, extract(epoch FROM next.at), 'unreadable'))
    FROM jobs_run AS open
    CROSS JOIN LATERAL (
        SELECT clock_timestamp() AS at,
            CASE open.state WHEN 'cancelling' THEN 'cancelled' ELSE 'failed' END AS state
    ) AS next
    WHERE open.id = %(id)s AND r.id = open.id AND r.id = %(id)s
      AND r.state NOT IN ('succeeded', 'failed', 'cancelled', 'expired')
    RETURNING r.id, r.owner_id, r.submission_id, r.state, r.ended_at
), announced AS (
    {runs/announce}
)
SELECT id, state FROM moved
