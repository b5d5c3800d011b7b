-- Read one job with its owner's slug and its target's name.
-- Parameters: id bigint; owner_ids bigint[]: owners whose jobs the caller sees; NULL: all.
-- Result: at most one row: the columns of jobs_job, owner_slug, target_name (NULL without a target).
SELECT j.*, o.slug AS owner_slug, t.name AS target_name
FROM jobs_job j
JOIN jobs_owner o ON o.id = j.owner_id
LEFT JOIN jobs_target t ON t.id = j.target_id
WHERE j.id = %(id)s::bigint
  AND (%(owner_ids)s::bigint[] IS NULL OR j.owner_id = ANY(%(owner_ids)s::bigint[]))
