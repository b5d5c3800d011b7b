"""Which late due times are run, and which are recorded as missed. Pure.

Each due time is either run or inside exactly one span.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class MissedSpan:
    """Consecutive due times that are not run, for one reason (`MissReason`)."""

    first_at: datetime
    last_at: datetime
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MisfireRule:
    """The misfire policy of a job.

    `policy` is "skip" (run none), "once" (the latest only) or "all" (the latest `cap`). Times that
    were due more than `deadline_seconds` ago are not run.
    """

    policy: str
    cap: int
    deadline_seconds: float | None = None


def decide(
    rows: Sequence[Sequence[datetime]], rule: MisfireRule, *, now: datetime
) -> tuple[list[datetime], list[MissedSpan]]:
    """Return the due times that are run, in order, and the spans of the others.

    `rows` are due times in order; each span is within one row. The cost depends on
    the rows and the times that are run, not on the number of due times.
    """
    left = {"skip": 0, "once": 1}.get(rule.policy, rule.cap)
    reason = "cap" if rule.policy == "all" else "outage"
    runs: list[datetime] = []
    spans: list[MissedSpan] = []
    for row in reversed(rows):
        late = _late(row, rule, now=now)
        first_run = max(late, len(row) - left)
        left -= len(row) - first_run
        runs[:0] = row[first_run:]
        spans += [*missed_span(row[late:first_run], reason), *missed_span(row[:late], "deadline")]
    return runs, spans[::-1]


def split_pause(
    rows: Sequence[Sequence[datetime]], *, paused_from: datetime | None, paused_until: datetime
) -> tuple[list[Sequence[datetime]], list[MissedSpan]]:
    """Return the rows of due times after a pause, and the spans of those before its end.

    With `paused_from`, due times inside the pause are left out of the spans: `record_pauses`
    records them later.
    """
    after: list[Sequence[datetime]] = []
    spans: list[MissedSpan] = []
    for row in rows:
        count = bisect_left(row, paused_until)
        own = count if paused_from is None else min(count, bisect_left(row, paused_from))
        spans += missed_span(row[:own], "paused")
        if count < len(row):
            after.append(row[count:])
    return after, spans


def missed_span(due: Sequence[datetime], reason: str) -> list[MissedSpan]:
    """Return one span of these consecutive due times, as a list; empty without due times."""
    return [MissedSpan(due[0], due[-1], len(due), reason)] if due else []


def _late(row: Sequence[datetime], rule: MisfireRule, *, now: datetime) -> int:
    if rule.deadline_seconds is None or rule.policy == "skip":
        return 0
    return bisect_left(row, now - timedelta(seconds=rule.deadline_seconds))
