-- Return the id of a job by its key, or one that a new job is to have.
-- Parameters: owner_id bigint, or slug text; key text.
-- Result: id, owner (the slug); no row if there is no such owner.
-- Keeps true: an id is given once.
SELECT o.slug AS owner,
    coalesce(
        (SELECT j.id FROM jobs_job AS j WHERE j.owner_id = o.id AND j.key = %(key)s::text),
        nextval(pg_get_serial_sequence('jobs_job', 'id'))) AS id
FROM jobs_owner AS o
WHERE o.id = coalesce(
    %(owner_id)s::bigint, (SELECT id FROM jobs_owner WHERE slug = %(slug)s::text))
