"""A line of a page for each job: state, schedule in words, next due time, last results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from jobs.core.errors import ScheduleError
from jobs.core.language import in_language
from jobs.core.states import ENDED, State
from jobs.models import Job
from jobs.recurring import timetable
from jobs.recurring.timetable import Life
from jobs.runs.reads.counts import Result, last_results
from jobs.schedules import in_words

PILLS: Final[Mapping[str, tuple[Any, str, str]]] = {
    Life.ENABLED: (_("enabled"), "●", "good"),
    Life.DISABLED: (_("disabled"), "○", "idle"),
    Life.PAUSED: (_("paused"), "‖", "held"),
    Life.BROKEN: (_("broken"), "✕", "bad"),
    "failing": (_("failing"), "✕", "bad"),
}
"""The word, the sign and the tone of each state of a job."""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job, ready to be shown. `problem` says why its schedule cannot be read."""

    job: Job
    life: Life
    words: str
    problem: str
    next_at: datetime | None
    is_soon: bool
    """It is due within two days, so its age is shown, too."""
    results: Sequence[State]
    """The states of its last runs, the newest last."""
    run_seconds: float | None
    """The 95th percentile of their run times; None if none of them has ended."""

    @property
    def pills(self) -> list[tuple[Any, str, str]]:
        """The word, the sign and the tone of its state, and of its last result if it failed."""
        return [PILLS[self.life], *([PILLS["failing"]] if self.is_failing else [])]

    @property
    def is_failing(self) -> bool:
        """Whether its last run that has ended failed."""
        ended = [state for state in self.results if state in ENDED]
        return bool(ended) and ended[-1] is State.FAILED

    @property
    def warnings(self) -> list[tuple[Any, str, str]]:
        """The pills, without that of a job which is just enabled."""
        return [pill for pill in self.pills if pill is not PILLS[Life.ENABLED]]

    @property
    def paused_until(self) -> datetime | None:
        """The end of its pause; None if it is not paused."""
        return self.job.paused_until if self.life is Life.PAUSED else None


def lines_of(jobs: Sequence[Job], *, now: datetime) -> list[JobLine]:
    """Return the lines of jobs; one query for the results of all."""
    results = last_results([job.pk for job in jobs])
    return [_line(job, results.get(job.pk, ())[::-1], now=now) for job in jobs]


def _line(job: Job, results: Sequence[Result], *, now: datetime) -> JobLine:
    words, problem, next_at = "", "", None
    try:
        words = in_language(in_words(timetable.of_job(job)))
        next_at = timetable.next_due(job, now=now)
    except ScheduleError as error:
        problem = timetable.problem_of(error)
    return JobLine(
        job=job,
        life=timetable.life_of(job, now=now),
        words=words,
        problem=problem,
        next_at=next_at,
        is_soon=next_at is not None and next_at - now < timedelta(days=2),
        results=[result.state for result in results],
        run_seconds=_p95([each.seconds for each in results if each.seconds is not None]),
    )


def _p95(seconds: list[float]) -> float | None:
    """Return the least of some times that 95 % of them do not pass."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1] if seconds else None
