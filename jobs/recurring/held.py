"""Held: due times of jobs that somebody's open transaction keeps from being judged.

Nobody waits for that one. Each such job gets a tick of its own, which the pulses send until the
transaction has ended; its neighbours go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobs.core import sql

Span = tuple[int, int, int]
"""A job, and the first slot and the end of those in which it is to be judged."""


def leave(spans: Iterable[Span]) -> None:
    """Leave jobs to ticks of their own, in the caller's transaction; once each."""
    rows = list(spans)
    if rows:
        job_ids, first_slots, end_slots = map(list, zip(*rows, strict=True))
        given = {"job_ids": job_ids, "first_slots": first_slots, "end_slots": end_slots}
        sql.run("recurring/defer_locked_jobs", given)
