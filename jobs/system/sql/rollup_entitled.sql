-- Compute the part of the worker time of a span to which weights entitle the owners that had work.
-- Parameters: start and end timestamptz (end not included); slugs text[] and waited float8[]: owners with
-- work now, and the seconds for which their oldest message has waited.
-- Result: a row for each owner that had work: owner_id, entitled (0 to 1). None without worker time.
-- Keeps true: each minute is divided by weight among the owners of which an attempt ended in it, or whose
-- message waited in it, and counts by its worker time: so parts add up to 1, as those received do.
-- Cost: the rollups of the span, and owners with work times minutes.
WITH minutes AS (
    SELECT minute, worker_seconds FROM jobs_rolluptotal
    WHERE minute >= %(start)s AND minute < %(end)s AND worker_seconds > 0
), with_work AS (
    SELECT minute, owner_id FROM jobs_rollup
    WHERE minute >= %(start)s AND minute < %(end)s AND worker_seconds > 0
    UNION
    SELECT m.minute, o.id
    FROM unnest(%(slugs)s::text[], %(waited)s::float8[]) AS w (slug, seconds)
    JOIN jobs_owner AS o USING (slug)
    JOIN minutes AS m
        ON clock_timestamp() - make_interval(secs => w.seconds) < m.minute + interval '1 minute'
), shares AS (
    SELECT w.minute, w.owner_id, o.weight::float8 / sum(o.weight) OVER (PARTITION BY w.minute) AS share
    FROM with_work AS w JOIN jobs_owner AS o ON o.id = w.owner_id
)
SELECT s.owner_id,
    sum(s.share * m.worker_seconds) / (SELECT sum(worker_seconds) FROM minutes) AS entitled
FROM shares AS s JOIN minutes AS m USING (minute)
GROUP BY s.owner_id
