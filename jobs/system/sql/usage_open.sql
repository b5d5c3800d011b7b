-- Count an owner's open runs by the span in which they were submitted, or due.
-- Parameters: owner; limits uuid[]: the first ids of the spans, rising, and the one where the last ends;
-- first and last: the first and the last of them; states text[]: those in which a run is open.
-- Result: a row for each span and state that it has: number (0 for the first span), state, count.
-- Cost: open runs of the spans, by index; the caller limits the time.
SELECT width_bucket(id, %(limits)s::uuid[]) - 1 AS number, state, count(*) AS count
FROM jobs_run
WHERE owner_id = %(owner)s AND id >= %(first)s AND id < %(last)s
    AND state <> 'succeeded' AND state = ANY(%(states)s::text[])
GROUP BY number, state
