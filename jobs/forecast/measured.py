"""How fast the runs of a submission end now, read from its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from jobs.core import sql
from jobs.forecast.course import Group
from jobs.models import Submission
from jobs.windows import open_spans

PACE_RUNS: Final = 20
"""Recently ended runs, and also waiting ones, from which the pace of a submission is known."""
PACE_SECONDS: Final = 0.8


@dataclass(frozen=True, slots=True)
class Pace:
    """How many runs of a submission ended per second, measured for `seconds`."""

    per_second: float
    seconds: float
    change: float
    """The relative difference between both halves of that time."""
    received: float | None
    """The part of the slots that the submission had; None: not known."""
    took: float | None = None
    """The mean run time of its runs."""
    others: Mapping[str, float] = field(default_factory=dict)
    """The mean run time of other runs of the queue, by the slugs of their owners."""

    def spread(self, rest: float) -> float:
        """Return how far runs may take longer (0.5: half as long again) in the `rest` seconds.

        A quarter, the change that was seen, and more if a short measurement says it of a long time.
        """
        return 0.25 + self.change + min(0.3, 0.03 * rest / self.seconds)


def pace_of(submission: Submission, groups: Sequence[Group]) -> Pace | None:
    """Return the pace of a submission; None while that is not known.

    It is known after PACE_SECONDS of waiting for slots, if the waiting runs have equal calendars.
    """
    [row] = sql.run("runs/ended_lately", {"submission": submission.pk})
    calendars = {group.calendars for group in groups}
    if row["count"] < PACE_RUNS or row["queued"] < PACE_RUNS or len(calendars) > 1:
        return None
    spans = open_spans(*calendars, start=row["since"], end=row["now"])
    seconds = sum((span.length for span in spans), timedelta(0)).total_seconds()
    if seconds < PACE_SECONDS:
        return None
    change = abs(2 * row["later"] / row["count"] - 1)
    others = zip(row["others"] or (), row["others_took"] or (), strict=True)
    measured = (row["received"], row["took"], dict(others))
    return Pace((row["count"] - 1) / seconds, seconds, change, *measured)
