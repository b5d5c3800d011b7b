-- The partitions of runs and attempts, one a day (UTC), from yesterday to 30 days ahead.
-- jobs/system/partitions.py makes those of later days in the same way.
DO $$
DECLARE
    today timestamp := date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC');
    midnight timestamp;
    parent text;
    name text;
    low uuid;
    high uuid;
BEGIN
    FOR day IN -1..30 LOOP
        midnight := today + make_interval(days => day);
        -- The smallest ids of that day and of the next: 48 bits of milliseconds, then zeros.
        low := rpad(lpad(to_hex(extract(epoch FROM midnight)::bigint * 1000), 12, '0'), 32, '0');
        high := rpad(
            lpad(to_hex((extract(epoch FROM midnight)::bigint + 86400) * 1000), 12, '0'), 32, '0');
        FOREACH parent IN ARRAY ARRAY['jobs_run', 'jobs_attempt'] LOOP
            name := parent || to_char(midnight, '_YYYYMMDD');
            EXECUTE format(
                'CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
            IF parent = 'jobs_run' THEN
                -- The oldest index of its table: where two look equally good, PostgreSQL takes the
                -- newer one, and this one leads to an id through all owners.
                EXECUTE format('CREATE INDEX ON %I (owner_id, id)', name);
            END IF;
            EXECUTE format(
                'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, name, low, high);
        END LOOP;
    END LOOP;
END $$;
