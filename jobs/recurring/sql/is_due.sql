-- A condition, for other statements: the job in the row `due` is due at `moment.at`.
-- Keeps true: both of the schedule's bounds count. Nothing is due before the schedule holds
--   (effective_from), nor during a pause.
-- guard: due times: a schedule holds from when it was written
(due.effective_from <= moment.at
    AND (due.start_at IS NULL OR due.start_at <= moment.at)
    AND (due.end_at IS NULL OR due.end_at >= moment.at)
    AND (due.paused_until IS NULL OR due.paused_until <= moment.at
        OR due.paused_from > moment.at))
