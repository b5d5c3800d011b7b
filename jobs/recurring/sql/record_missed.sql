-- Record due times that are not run.
-- Parameters, side by side: job_ids bigint[], first_ats and last_ats timestamptz[], counts int[],
-- reasons text[].
-- Result: none.
-- Keeps true: a job has one record for a span and reason; a deleted job gets none.
INSERT INTO jobs_missed (job_id, owner_id, first_at, last_at, count, reason)
SELECT j.id, j.owner_id, span.first_at, span.last_at, span.count, span.reason
FROM unnest(%(job_ids)s::bigint[], %(first_ats)s::timestamptz[], %(last_ats)s::timestamptz[],
    %(counts)s::int[], %(reasons)s::text[]) AS span (job_id, first_at, last_at, count, reason)
JOIN jobs_job AS j ON j.id = span.job_id
-- guard: due times: a span is recorded once
ON CONFLICT DO NOTHING
