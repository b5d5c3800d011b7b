"""The pace of a submission: its percentage, its rate and its duration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Min
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from jobs.core.states import ENDED
from jobs.models import Run, Submission
from jobs.models.submission import Progress


@dataclass(frozen=True, slots=True)
class Pace:
    """`ended` of `total` runs of a submission have ended, between two times."""

    ended: int
    total: int
    since: datetime | None
    until: datetime | None

    @property
    def percentage(self) -> str:
        """Return the percentage that has ended, rounded down: 100 % means all."""
        return f"{100 * self.ended // self.total if self.total else 100} %"

    @property
    def length(self) -> timedelta | None:
        """Return how long it took, or has taken so far; None before the first start."""
        return None if self.since is None or self.until is None else self.until - self.since

    @property
    def rate(self) -> str:
        """Return how many runs ended in a second, a minute or an hour; empty when none did."""
        seconds = self.length.total_seconds() if self.length else 0
        if not self.ended or seconds <= 0:
            return ""
        rate, unit = self.ended / seconds, _("s")
        if rate < 1:
            rate, unit = rate * 60, _("min")
        if rate < 1:
            rate, unit = rate * 60, _("h")
        return f"{number_format(round(rate, 1), 1, use_l10n=True, force_grouping=True)} / {unit}"


def pace_of(submission: Submission, *, now: datetime, progress: Progress | None = None) -> Pace:
    """Return the pace of a submission from its first start to its last end, or until now.

    `progress` is its progress, if the caller has counted it already.
    """
    counts = progress or submission.progress
    runs: Any = Run.objects.filter(submission=submission).order_by()
    times = runs.aggregate(first=Min("started_at"), last=Max("ended_at"))
    return Pace(
        ended=sum(counts[state] for state in ENDED),
        total=counts.total,
        since=times["first"],
        until=times["last"] if counts.is_done else now,
    )
