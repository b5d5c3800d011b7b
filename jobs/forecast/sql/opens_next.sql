-- The openings for which held runs wait, the earliest first.
-- Parameters: owners bigint[] (NULL: all); now, until timestamptz; read, most int: held runs that are
--   read, and rows.
-- Result: owner_id, minute, next_at (of the first run), runs (count), task and queue of one of them,
--   calendar (name), opens_at, closes_at of the opening that closes first; these are null if none is
--   open then.
-- Keeps true: held runs are read by the index of promotion (run_delayed), `read` of them at most. Equal
--   runs have equal calendars nearly always: one run of each minute is looked up.
WITH soon AS MATERIALIZED (
    SELECT id, owner_id, job_id, target_id, window_policy, task, queue, next_at FROM jobs_run
    WHERE state = 'held' AND next_at > %(now)s AND next_at < %(until)s
        AND (%(owners)s::bigint[] IS NULL OR owner_id = ANY(%(owners)s::bigint[]))
    ORDER BY next_at LIMIT %(read)s
), minutes AS (
    SELECT owner_id, date_trunc('minute', next_at) AS minute, count(*) AS runs,
        (array_agg(id ORDER BY next_at, id))[1] AS sample
    FROM soon GROUP BY owner_id, date_trunc('minute', next_at)
    ORDER BY minute, owner_id LIMIT %(most)s
)
SELECT m.owner_id, m.minute, m.runs, r.next_at, r.task, r.queue, o.name AS calendar, o.opens_at,
    o.closes_at
FROM minutes AS m
JOIN soon AS r ON r.id = m.sample
LEFT JOIN LATERAL (
    SELECT c.name, open.opens_at, open.closes_at
    FROM jobs_opening AS open JOIN jobs_calendar AS c ON c.id = open.calendar_id
    WHERE open.calendar_id = ANY(jobs_calendars(r.owner_id, r.job_id, r.target_id, r.window_policy))
        AND open.opens_at <= r.next_at AND open.closes_at > r.next_at
    ORDER BY open.closes_at LIMIT 1
) AS o ON true
ORDER BY m.minute, m.owner_id
