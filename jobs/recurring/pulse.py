"""The pulse: once a second, the slots that have passed are handed out as ticks.

While no job is enabled, it makes a tick every 8 s.

If two pulses run at once, one of them returns. If a tick's message was lost, a later pulse sends it
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fleet import crash_point
from jobs.core import sql
from jobs.core.conf import setting

TICK_SLOTS: Final = 20
"""Slots of one tick at most: after an outage of beat several ticks run side by side."""
REST_SLOTS: Final = 16
"""Slots between two ticks while no job is enabled: 8 s, in which the pulse writes nothing."""
PATIENCE_SECONDS: Final = 5.0
"""Time without progress after which a tick is sent again."""
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
            "rest": REST_SLOTS,
        },
    )
    if not rows:
        # Another pulse is running, or the table is empty: then due times count from now on.
        sql.query(_BEGIN)
    crash_point("pulse.after_commit")
    return [row["id"] for row in rows]


Span = tuple[int, int, int]
"""A job, and the first and the end of the slots in which it is to be judged."""


def defer_locked(spans: Iterable[Span]) -> None:
    """Give each job a tick of its own, in the caller's transaction."""
    given = sql.columns(spans, "job_ids", "first_slots", "end_slots")
    if given["job_ids"]:
        sql.run("recurring/defer_locked_jobs", given)
