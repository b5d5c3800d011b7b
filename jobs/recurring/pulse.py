"""The pulse: once a second, the slots that have passed are handed out as ticks.

Cheap, and harmless to repeat: a pulse that meets another has nothing to do, and whatever becomes of
a tick's message, the next pulses send it until the tick is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fleet import crash_point
from jobs.core import sql
from jobs.core.conf import setting

TICK_SLOTS: Final = 20
"""After a pause of beat what is due is shared out to several ticks, which run side by side."""

PATIENCE_SECONDS: Final = 5.0
"""A tick that has not been heard of for so long is sent again."""

_BEGIN: Final = """
INSERT INTO jobs_cursor (id, slot, beat_at, again_seen)
SELECT 1, floor(extract(epoch FROM clock_timestamp()) * 2)::bigint, clock_timestamp(),
    pg_current_snapshot()
WHERE NOT EXISTS (SELECT FROM jobs_cursor) ON CONFLICT DO NOTHING
"""


def make_ticks() -> list[int]:
    """Hand out the slots up to now; return the ids of the ticks that are to be sent."""
    rows = sql.run(
        "recurring/make_ticks",
        {
            "grace": round(2 * setting("MISFIRE_GRACE_SECONDS")),
            "span": TICK_SLOTS,
            "patience": PATIENCE_SECONDS,
            "keep": round(2 * setting("LATE_COMMIT_SECONDS")),
        },
    )
    if not rows:
        # Another pulse, or an emptied table: due times count from now on.
        sql.query(_BEGIN)
    crash_point("pulse.after_commit")
    return [row["id"] for row in rows]


Span = tuple[int, int, int]
"""A job, and the first slot and the end of those in which it is to be judged."""


def defer_locked(spans: Iterable[Span]) -> None:
    """Leave jobs to ticks of their own, in the caller's transaction; once each."""
    rows = list(spans)
    if rows:
        job_ids, first_slots, end_slots = map(list, zip(*rows, strict=True))
        given = {"job_ids": job_ids, "first_slots": first_slots, "end_slots": end_slots}
        sql.run("recurring/defer_locked_jobs", given)
