-- Return the owners of runs.
-- Parameters: ids uuid[].
-- Result: id and owner (the slug) of each run that there is.
-- Cost: each row is found by its id.
SELECT r.id, o.slug AS owner
FROM {runs} AS r
CROSS JOIN LATERAL (SELECT slug FROM jobs_owner WHERE id = r.owner_id OFFSET 0) AS o
WHERE r.id = ANY(%(ids)s)
