-- An expression, for other statements: the slot, in half-seconds, of a job that is placed within
-- `minutes`; slot / 120 is its phase, the remainder its shard.
-- Keeps true: it is that of jobs.schedules.place for the next number of the interval: the Weyl
--   sequence of the golden ratio, in whole numbers.
div(mod(nextval(('jobs_phase_' || minutes %% 64)::regclass) * 11400714819323198485::numeric,
        18446744073709551616::numeric) * minutes * 120, 18446744073709551616::numeric)::bigint
