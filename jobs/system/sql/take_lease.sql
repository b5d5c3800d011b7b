-- Take or renew a lease, by PostgreSQL's clock.
-- Parameters: name text, holder text, seconds float8; ahead float8 or null: how far the holder's clock is
--   ahead of PostgreSQL's.
-- Result: one row: is_led (this holder has the lease now), now (PostgreSQL's time).
-- Keeps true: a name has one holder at a time; another one gets it only after its end.
WITH led AS (
    INSERT INTO jobs_leader AS l (name, holder, since, until, clock_ahead_seconds)
    VALUES (%(name)s, %(holder)s, clock_timestamp(),
            clock_timestamp() + make_interval(secs => %(seconds)s), %(ahead)s)
    ON CONFLICT (name) DO UPDATE
    SET holder = EXCLUDED.holder,
        since = CASE WHEN l.holder = EXCLUDED.holder THEN l.since ELSE clock_timestamp() END,
        -- After the wait for the row, if there was one.
        until = clock_timestamp() + make_interval(secs => %(seconds)s),
        clock_ahead_seconds = EXCLUDED.clock_ahead_seconds
    -- guard: beats: a lease has one holder until its end
    WHERE l.holder = EXCLUDED.holder OR l.until <= clock_timestamp()
    RETURNING l.name)
SELECT EXISTS (SELECT FROM led) AS is_led, clock_timestamp() AS now
