"""The wait objectives of owners, and how fast they use up what may be late.

An objective: a part of an owner's starts waits at most some seconds, from when the run may start
(it was queued: due, in its window) to its start. The burn rate of a span is the part of its starts
that were late, divided by the part that may be late: at 1, an owner just keeps its objective. An
alert looks at a long and at a short span: the long one shows that it matters, the short one that
it still goes on ("Alerting on SLOs" in Google's Site Reliability Workbook, chapter 5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from jobs.core import barrier, sql
from jobs.core.counting import within
from jobs.models import Owner
from jobs.system.rollups.histogram import GROWTH
from jobs.system.rollups.reads import last_minutes

MOST_OWNERS: Final = 100
"""Owners whose burn rates are read at once, at most."""
MILLISECONDS: Final = 500
"""Most time of the query."""
LEAST_STARTS: Final = 10
"""A long span with fewer starts has no burn rate: one late run would be an alert."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Two spans in minutes, and the burn rate from which both together are a problem.

    `late_part` is that rate for an objective of 95 %. Where less than 95 % need to be in time, no
    rate can be so high, and this part of late starts counts.
    """

    name: str
    long: int
    short: int
    rate: float
    late_part: float


FAST: Final = Pace("fast", long=60, short=5, rate=14.4, late_part=0.72)
SLOW: Final = Pace("slow", long=360, short=30, rate=6.0, late_part=0.3)
PACES: Final = (FAST, SLOW)
SPANS: Final = {5: "5m", 30: "30m", 60: "1h", 360: "6h"}
"""The spans in minutes, with the names that metrics give them."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The starts of a span, and those of them that were late; a part of a bucket may be."""

    starts: int = 0
    late: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An owner's objective, and its starts by the minutes of a span."""

    owner: Owner
    seconds: int
    percent: float
    counted: Mapping[int, Counted] = field(default_factory=dict)

    @property
    def may_be_late(self) -> float:
        """The part of the starts that may be late."""
        return 1 - self.percent / 100

    def burn(self, span: int) -> float | None:
        """Return the burn rate of a span; None without starts, or with few in a long span."""
        counted = self.counted.get(span, Counted())
        is_long = any(pace.long == span for pace in PACES)
        if counted.starts < (LEAST_STARTS if is_long else 1):
            return None
        return counted.late / counted.starts / self.may_be_late

    def in_time(self, span: int) -> float | None:
        """Return the part of the starts of a span that were in time; None without starts."""
        counted = self.counted.get(span, Counted())
        return 1 - counted.late / counted.starts if counted.starts else None

    @property
    def burning(self) -> Pace | None:
        """The pace at which it burns, the fast one first; None: neither."""
        for pace in PACES:
            limit = min(pace.rate, pace.late_part / self.may_be_late)
            rates = [self.burn(span) for span in (pace.long, pace.short)]
            if all(rate is not None and rate >= limit * (1 - 1e-9) for rate in rates):
                return pace
        return None


def worst(found: Collection[Objective]) -> Objective | None:
    """Return the objective that burns fastest; None if none burns."""
    burning = [one for one in found if one.burning is not None]
    return min(burning, key=_urgency, default=None)


def _urgency(one: Objective) -> tuple[bool, float]:
    return one.burning is not FAST, -max(one.burn(pace.long) or 0.0 for pace in PACES)


def objectives(owner_ids: Collection[int] | None) -> list[Objective] | None:
    """Return the objectives of owners, by slug, at most MOST_OWNERS; None: too much to read.

    `owner_ids` None: all owners. Of more than MOST_OWNERS those with the newest ids are left out.
    """
    rows = Owner.objects.filter(wait_objective_seconds__isnull=False)
    if owner_ids is not None:
        rows = rows.filter(pk__in=owner_ids)
    found = sorted(rows.order_by("pk")[:MOST_OWNERS], key=lambda owner: owner.slug)
    if not found:
        return []
    counted = _counted([owner.pk for owner in found])
    if counted is None:
        return None
    return [
        Objective(
            owner=owner,
            seconds=owner.wait_objective_seconds or 0,
            percent=owner.wait_objective_percent,
            counted=counted.get(owner.pk, {}),
        )
        for owner in found
    ]


def _counted(owner_ids: list[int]) -> Mapping[int, Mapping[int, Counted]] | None:
    span = last_minutes(max(SPANS))
    if span is None:
        return {}
    given = {
        "owners": owner_ids,
        "start": span[0],
        "end": span[1],
        "spans": list(SPANS),
        "growth": GROWTH,
    }
    with barrier.lifted():
        rows = within(MILLISECONDS, partial(sql.run, "system/rollup_objectives", given))
    if rows is None:
        return None
    found: dict[int, dict[int, Counted]] = defaultdict(dict)
    for row in rows:
        found[row["owner_id"]][row["span"]] = Counted(row["starts"], row["late"])
    return found
