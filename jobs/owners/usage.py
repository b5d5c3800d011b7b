"""The usage of an owner in a span, and the share of the workers that it received.

A run belongs to the span in which it was submitted (of a job: in which it was due), so each run is
in one span only, and spans add up. Worker time is that of ended attempts, by PostgreSQL's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from time import monotonic
from typing import Any, Final

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.counting import within
from jobs.core.errors import OptionError
from jobs.core.ids import first_id_of
from jobs.core.inputs import refuse_naive
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner
from jobs.runs.dispatch import owners

LONGEST: Final = timedelta(days=31)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Ids begin at this time."""
MILLISECONDS: Final = 700
"""Most time of each of the two queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of an owner. None: counting took too long, or Redis is away."""

    runs: Mapping[State, int] | None
    worker_seconds: float | None
    received: float | None
    """Its part of all owners' worker time in the span; None, too, if there was none."""
    entitled: float | None
    """Its part by weight among the owners that have work now; 0: it has none."""


def usage(owner: Owner, *, start: datetime, end: datetime) -> Usage:
    """Return the usage of an owner's runs of a span; raise OptionError for a wrong span."""
    refuse_naive("after", start)
    refuse_naive("before", end)
    if end <= start:
        raise OptionError("before", "is not later than after")
    if end - start > LONGEST:
        raise OptionError("before", f"is at most {LONGEST.days} days later than after")
    span = _span(start, end)
    rows = _counted(MILLISECONDS, {"owner": owner.pk, **span})
    seconds = None if rows is None else sum(row["worker_seconds"] for row in rows)
    return Usage(
        runs=None if rows is None else {State(row["state"]): row["runs"] for row in rows},
        worker_seconds=seconds,
        received=None if seconds is None else _received(seconds, span),
        entitled=_entitled(owner.slug),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The usage of one day. None: it was too much to count."""

    start: datetime
    runs: Mapping[State, int] | None
    worker_seconds: float | None


def daily_usage(owner: Owner, *, days: int, zone: tzinfo) -> list[Day]:
    """Return an owner's usage of the last days of a zone, today last.

    All days share one limit of time. Today is counted first, so that old days stay uncounted.
    """
    today = now().astimezone(zone).date()
    dates = [today - timedelta(days=before) for before in range(days)]
    ends = monotonic() + MILLISECONDS / 1000
    found = []
    for date in dates:
        start, end = (datetime.combine(date + timedelta(days=n), time(), zone) for n in (0, 1))
        left = int(1000 * (ends - monotonic()))
        given = {"owner": owner.pk, **_span(start, end)}
        rows = _counted(left, given) if left > 0 else None
        found.append(
            Day(
                start=start,
                runs=None if rows is None else {State(row["state"]): row["runs"] for row in rows},
                worker_seconds=None if rows is None else sum(row["worker_seconds"] for row in rows),
            )
        )
    return found[::-1]


def received_by_owner(*, start: datetime, end: datetime) -> Mapping[int, float] | None:
    """Return each owner's part of the worker time of a span's runs, by its id; None: too many.

    Empty if there was none.
    """
    rows = within(
        MILLISECONDS, lambda: sql.run("owners/worker_seconds_by_owner", _span(start, end))
    )
    if rows is None:
        return None
    total = sum(row["worker_seconds"] for row in rows)
    return {row["owner_id"]: row["worker_seconds"] / total for row in rows} if total else {}


def _counted(milliseconds: int, given: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    return within(milliseconds, lambda: sql.run("owners/usage", given))


def _span(start: datetime, end: datetime) -> dict[str, Any]:
    return {"first": first_id_of(max(start, EPOCH)), "last": first_id_of(max(end, EPOCH))}


def _received(seconds: float, span: dict[str, Any]) -> float | None:
    rows = within(MILLISECONDS, lambda: sql.run("owners/worker_seconds", span))
    total: float = rows[0]["worker_seconds"] if rows else 0.0
    # Attempts may have ended between the two queries.
    return min(1.0, seconds / total) if total else None


def _entitled(slug: str) -> float | None:
    try:
        snapshot = owners().snapshot(timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable:
        return None
    return snapshot.entitled().get(slug, 0.0)
