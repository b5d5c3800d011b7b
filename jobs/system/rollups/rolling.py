"""Writing rollups: each minute is counted from its rows once all of them are committed.

A transaction that is open at the end of a minute may still commit attempts of that minute. So a
round first notes the next transaction id; when all transactions before it have ended, the minute
is counted, and is final. If that takes longer than PATIENCE, the minute is counted meanwhile, and
again at the end. Counting a minute replaces its rows, so it may be repeated.

An attempt belongs to the minute in which its outcome was written. The worker may report an outcome
late, for example after an outage of PostgreSQL, and the end that it reports may be in a minute that
is final. A run that ended without an attempt belongs to the minute of its end; if an operator
retries it before that minute is final, it is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from jobs.core import sql
from jobs.core.conf import setting
from jobs.system.rollups import metric_totals
from jobs.system.rollups.histogram import GROWTH, SHORTEST

MINUTE: Final = timedelta(minutes=1)
PATIENCE: Final = timedelta(minutes=1)
"""How long after its end a minute waits for open transactions before it is counted."""
MOST_MINUTES: Final = 120
"""Minutes that one round counts at most. The next round goes on."""
MOST_DROPPED: Final = 50_000
"""Rows of each table that one round deletes at most."""

_LOCK: Final = "SELECT final_until FROM jobs_rollupposition FOR UPDATE"
_ADVANCE: Final = """
UPDATE jobs_rollupposition SET
    counted_until = greatest(counted_until, %(end)s),
    final_until = CASE WHEN %(is_final)s THEN greatest(final_until, %(end)s) ELSE final_until END,
    boundary_at = CASE WHEN %(is_final)s AND boundary_at <= %(end)s THEN NULL ELSE boundary_at END
"""
_TABLES: Final = ("jobs_rollup", "jobs_rolluptotal")
_DROP: Final = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {table} WHERE minute < %s ORDER BY minute LIMIT %s))
"""


@dataclass(frozen=True, slots=True)
class _Position:
    """How far the rollups are; see `RollupPosition`. `now` is by PostgreSQL's clock."""

    final_until: datetime
    counted_until: datetime
    boundary_at: datetime | None
    is_passed: bool
    now: datetime


def roll_up() -> int:
    """Count the minutes that have ended since the last round; return how many.

    Deletes rollups older than ROLLUP_DAYS. Repeating it, or ending it at any point, is harmless.
    """
    at = _position()
    oldest = at.now - timedelta(days=setting("ROLLUP_DAYS"))
    for table in _TABLES:
        sql.query(_DROP.format(table=table), [oldest, MOST_DROPPED])
    if at.boundary_at is None:
        counted = 0
    elif at.is_passed:
        counted = _count(max(at.final_until, _minute_of(oldest)), at.boundary_at, is_final=True)
    else:
        counted = _count(at.counted_until, _minute_of(at.now - PATIENCE), is_final=False)
    # After the clock was read, so in a later snapshot: a transaction that begins to write after it
    # cannot write an attempt of the minutes before.
    sql.run("system/rollup_boundary", {"minute": _minute_of(at.now)})
    return counted


def count_minute(minute: datetime, *, is_final: bool) -> None:
    """Replace the rollups of one minute, and their total, by a count of its rows.

    The totals of metrics get the minute once: when it becomes final.
    """
    end = minute + MINUTE
    with transaction.atomic():
        # First: one process counts at a time.
        position = sql.query(_LOCK)
        # Not again when a final minute is counted once more: a counter would rise for nothing.
        adds = is_final and bool(position) and position[0]["final_until"] < end
        sql.query(_ADVANCE, {"end": end, "is_final": is_final})
        # A new partition has no statistics, and PostgreSQL would not use its BRIN index.
        sql.query("SET LOCAL enable_seqscan = off")
        for table in _TABLES:
            sql.query(f"DELETE FROM {table} WHERE minute = %s", [minute])  # noqa: S608
        sql.run(
            "system/rollup_minute",
            {
                "minute": minute,
                "end": end,
                "growth": GROWTH,
                "shortest": SHORTEST,
                **metric_totals.parameters(minute, end=end, adds=adds),
            },
        )
        sql.run("system/rollup_total", {"minute": minute})


def _position() -> _Position:
    sql.run("system/rollup_begin", {})
    [row] = sql.run("system/rollup_position", {})
    return _Position(**row)


def _count(start: datetime, end: datetime, *, is_final: bool) -> int:
    minutes = min(MOST_MINUTES, max(0, (end - start) // MINUTE))
    for number in range(minutes):
        count_minute(start + number * MINUTE, is_final=is_final)
    return minutes


def _minute_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
