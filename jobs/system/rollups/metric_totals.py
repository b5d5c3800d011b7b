"""Totals for metrics: counters by owner and queue to which each final minute is added once.

Prometheus needs counters that never fall, and few series. So owners are named at writing: the
minute's counts of the owners with most load go to their own rows, those of all others to one row.
An owner without load loses its name and its rows after some time. If a reader summed up the others
instead, that sum would fall whenever an owner gets a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from celery import current_app

from fleet import fair_queues
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.ids import first_id_of
from jobs.models import MetricTotal, MissReason
from jobs.models.rollup import OUTCOMES

LIMITS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper limits of the buckets of wait and run times, in seconds; the last bucket has none."""
OUTCOME_NAMES: Final = tuple(state.value for state in OUTCOMES)
STAYS: Final = 0.98
"""The part of a load that a minute leaves to the next: half of it is gone after 34 minutes."""
OTHER: Final = "(other)"
"""The name of all owners, or queues, that metrics do not name. No owner may be called so."""

_READ: Final = """
SELECT t.owner_id, o.slug, t.queue, t.name, t.value
FROM jobs_metrictotal AS t LEFT JOIN jobs_owner AS o ON o.id = t.owner_id
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """The totals of some runs. All names are there, also those that are 0."""

    values: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, 0.0)

    def buckets(self, of: str) -> list[float]:
        """Return the counts of the buckets of `wait` or `run`, the last without a limit."""
        return [self[f"{of} {number}"] for number in range(len(LIMITS) + 1)]


@dataclass(frozen=True, slots=True)
class Totals:
    """The sum of all, and the totals by the names of owner and queue."""

    all: Counted
    each: Mapping[tuple[str, str], Counted]


def named_queues() -> list[str]:
    """Return the queues that metrics name: the first fair ones."""
    return list(fair_queues(current_app))[: setting("METRICS_NAMES")]


def parameters(minute: datetime, *, end: datetime, adds: bool) -> dict[str, Any]:
    """Return the parameters of metric_minute.sql."""
    return {
        "adds": adds,
        "first_id": first_id_of(minute),
        "end_id": first_id_of(end),
        "most": setting("METRICS_NAMES"),
        "queues": named_queues(),
        "stays": STAYS,
        "limits": list(LIMITS),
    }


def read() -> Totals:
    """Return all totals. An owner that was deleted has none."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    whole: dict[str, float] = {}
    for row in sql.query(_READ):
        if row["owner_id"] == MetricTotal.ALL:
            whole[row["name"]] = row["value"]
        elif row["slug"] is not None or row["owner_id"] == MetricTotal.OTHERS:
            found[row["slug"] or OTHER, row["queue"] or OTHER][row["name"]] = row["value"]
    return Totals(Counted(whole), {key: Counted(values) for key, values in found.items()})


def missed_name(reason: str) -> str:
    """Return the name of the total of missed spans with a reason, one of MissReason."""
    return f"missed {MissReason(reason).value}"
