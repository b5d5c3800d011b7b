-- An expression, for other statements: whether the job `j` keeps its place with the interval of the
-- row `n`.
j.phase IS NOT NULL AND j.shard IS NOT NULL
AND j.interval_minutes IS NOT DISTINCT FROM n.interval_minutes
