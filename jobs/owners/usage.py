"""The usage of an owner in a span, and the share of the workers that it received.

A run belongs to the span in which it was submitted (of a job: in which it was due), so each run is
in one span only, and spans add up. Worker time is that of ended attempts, by PostgreSQL's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.counting import within
from jobs.core.errors import OptionError
from jobs.core.ids import first_id_of
from jobs.core.inputs import refuse_naive
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
    span: dict[str, Any] = {
        "first": first_id_of(max(start, EPOCH)),
        "last": first_id_of(max(end, EPOCH)),
    }
    rows = within(MILLISECONDS, lambda: sql.run("owners/usage", {"owner": owner.pk, **span}))
    seconds = None if rows is None else sum(row["worker_seconds"] for row in rows)
    return Usage(
        runs=None if rows is None else {State(row["state"]): row["runs"] for row in rows},
        worker_seconds=seconds,
        received=None if seconds is None else _received(seconds, span),
        entitled=_entitled(owner.slug),
    )


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
