"""The usage of an owner in a span, and the share of the workers that it received.

It is read from rollups. An attempt, and the end of a run, belong to the span in which they were
recorded; an open run to the span in which it was submitted, or due. So spans add up.

Limits of spans are rounded down to full minutes where minutes are counted. The last minute or two,
which have no rollups yet, are read from rows; they are left out if that takes too long. If the
statistics lag, so much may be left out that the usage is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any, Final

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.counting import within
from jobs.core.errors import OptionError
from jobs.core.ids import first_id_of
from jobs.core.inputs import refuse_naive
from jobs.core.sql import now
from jobs.core.states import ENDED, State
from jobs.models import Owner
from jobs.runs.dispatch import owners
from jobs.system.rollups.reads import LATE, by_owner, counted_until, lag, worker_seconds

LONGEST: Final = timedelta(days=31)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Ids begin at this time."""
MILLISECONDS: Final = 700
"""Most time of each query."""
LIVE_MILLISECONDS: Final = 300
"""Most time in which minutes without rollups are read."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of an owner. None: counting took too long, or Redis is away."""

    runs: Mapping[State, int] | None
    """Ends of runs by state, and open runs by their state now."""
    worker_seconds: float | None
    received: float | None
    """Its part of all owners' worker time in the span; None, too, if there was none."""
    entitled: float | None
    """Its part by weight among the owners that have work now; 0: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The usage of one day. None: it was too much to count."""

    start: datetime
    runs: Mapping[State, int] | None
    worker_seconds: float | None


class _Spans:
    """Spans that follow one another, and what ended in those of their minutes without rollups."""

    def __init__(self, *limits: datetime) -> None:
        self.counted_until = counted_until() or EPOCH
        self.limits = [self._rounded(limit) for limit in limits]
        self.start, self.end = self.limits[0], min(self.limits[-1], self.counted_until)
        self.live = self._live()

    def counted(self, owner: Owner) -> Rows | None:
        """Return what ended of an owner, by number of the span and outcome; None: too much."""
        given = {"owner": owner.pk, "limits": self.limits, "start": self.start, "end": self.end}
        rows = within(MILLISECONDS, lambda: sql.run("system/usage_counted", given))
        if rows is None or self.live is None:
            return None
        return [*rows, *(row for row in self.live if row["owner_id"] == owner.pk)]

    def open(self, owner: Owner) -> Rows | None:
        """Return the open runs of an owner, by number of the span and state; None: too many."""
        ids = [first_id_of(max(limit, EPOCH)) for limit in self.limits]
        states = sorted(state.value for state in State if state not in ENDED)
        given = {"owner": owner.pk, "limits": ids, "first": ids[0], "last": ids[-1]}
        return within(
            MILLISECONDS, lambda: sql.run("system/usage_open", {**given, "states": states})
        )

    def worker_seconds(self) -> float:
        """Return the worker time of all owners."""
        return worker_seconds(start=self.start, end=self.end) + _seconds(self.live or ())

    def _rounded(self, limit: datetime) -> datetime:
        is_counted = limit < self.counted_until
        return limit.replace(second=0, microsecond=0) if is_counted else limit

    def _live(self) -> Rows | None:
        """Return what ended in minutes without rollups; None: too much, and not only the last."""
        start, end = max(self.start, self.counted_until), self.limits[-1]
        if start >= end:
            return []
        given = {"limits": self.limits, "minute": start, "end": end}
        found = within(LIVE_MILLISECONDS, lambda: sql.run("system/usage_live", given))
        return [] if found is None and lag(start, at=end) <= LATE else found


def usage(owner: Owner, *, start: datetime, end: datetime) -> Usage:
    """Return the usage of an owner in a span; raise OptionError for a wrong span."""
    refuse_naive("after", start)
    refuse_naive("before", end)
    if end <= start:
        raise OptionError("before", "is not later than after")
    if end - start > LONGEST:
        raise OptionError("before", f"is at most {LONGEST.days} days later than after")
    spans = _Spans(start, end)
    counted = spans.counted(owner)
    seconds = None if counted is None else _seconds(counted)
    total = spans.worker_seconds()
    return Usage(
        runs=_runs(counted, spans.open(owner)),
        worker_seconds=seconds,
        # A minute may have been counted again between the two queries.
        received=min(1.0, seconds / total) if seconds is not None and total else None,
        entitled=_entitled(owner.slug),
    )


def daily_usage(owner: Owner, *, days: int, zone: tzinfo) -> list[Day]:
    """Return an owner's usage of the last days of a zone, today last."""
    today = now().astimezone(zone).date()
    dates = [today + timedelta(days=number) for number in range(1 - days, 2)]
    limits = [datetime.combine(date, time(), zone) for date in dates]
    spans = _Spans(*limits)
    counted, waiting = spans.counted(owner), spans.open(owner)
    return [
        Day(
            start=start,
            runs=_runs(_of(number, counted), _of(number, waiting)),
            worker_seconds=None if counted is None else _seconds(_of(number, counted) or ()),
        )
        for number, start in enumerate(limits[:-1])
    ]


def received_by_owner(*, start: datetime, end: datetime) -> Mapping[int, float] | None:
    """Return each owner's part of the worker time of a span, by its id; None: too much to count.

    Empty if there was none.
    """
    spans = _Spans(start, end)
    found = within(MILLISECONDS, lambda: by_owner(None, start=spans.start, end=spans.end))
    if found is None or spans.live is None:
        return None
    seconds = Counter({one.owner_id: one.worker_seconds for one in found})
    for row in spans.live:
        seconds[row["owner_id"]] += row["worker_seconds"]
    total = seconds.total()
    return {key: each / total for key, each in seconds.items() if each} if total else {}


def _of(number: int, rows: Rows | None) -> Rows | None:
    return None if rows is None else [row for row in rows if row["number"] == number]


def _runs(counted: Sequence[dict[str, Any]] | None, waiting: Rows | None) -> Counter[State] | None:
    if counted is None or waiting is None:
        return None
    found: Counter[State] = Counter()
    for row in counted:
        # An attempt after which its run is tried again ends no run.
        if row["outcome"] in ENDED:
            found[State(row["outcome"])] += row["count"]
    for row in waiting:
        found[State(row["state"])] += row["count"]
    # The statements give them in any order.
    return Counter({state: found[state] for state in State if state in found})


def _seconds(rows: Iterable[Mapping[str, Any]]) -> float:
    return sum((row["worker_seconds"] for row in rows), 0.0)


def _entitled(slug: str) -> float | None:
    try:
        snapshot = owners().snapshot(timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable:
        return None
    return snapshot.entitled().get(slug, 0.0)
