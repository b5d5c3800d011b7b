"""The demo's verdict: figures from the rows and the device server."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, pstdev
from typing import Any

import urllib3
from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import Now

from config.demo.foreseen import Foreseen
from config.demo.screen import Line
from jobs.core.states import ACTIVE, State
from jobs.forecast.replay.load import SECOND, Call, Load
from jobs.forecast.replay.simulation import Replay
from jobs.models import Run, Submission

REPORT_SECONDS = 10.0
NAMED = 5
"""Runs that have not succeeded and are shown."""


@dataclass(frozen=True, slots=True)
class UpgradeVerdict:
    """The result of the upgrade; `outside` counts upgrades outside of the agreed hours.

    `asked` devices have customers that agreed; `upgraded` of them have the new version. The runs of
    the other customers stayed held.
    `openings` is the number of windows that opened meanwhile, `seconds` the duration, and `stopped`
    has the addresses of the rollouts that were stopped and resumed. `forecasts` were made shortly
    after the first submit: of the customers without such a rollout, who took `foreseen_seconds`.
    """

    asked: int
    upgraded: int
    outside: int
    doubled: int
    not_approved: int
    held_for_approval: int
    frozen: int
    held_by_freeze: int
    openings: int
    seconds: float
    forecasts: Sequence[Foreseen] = ()
    foreseen_seconds: float = 0.0
    stopped: Sequence[str] = ()
    first_outside: str = ""
    """The first upgrade that began or ended outside of the hours: which, and how late."""

    @property
    def is_good(self) -> bool:
        """Whether exactly the agreed devices were upgraded, in their hours; the rest is held."""
        held = (self.held_for_approval, self.held_by_freeze)
        is_held = held == (self.not_approved, self.frozen)
        return self.upgraded == self.asked and self.outside == self.doubled == 0 and is_held


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one demo; spans are in seconds.

    The large submission acts on `devices`, the small one on `lab_devices`. `verified` devices have
    the new version, by the device server; `runs_recorded` runs have succeeded, by their rows.
    `call_seconds` is the mean run time of the large one. `small_ideal_seconds` is the duration of
    the small one if it had its share of the slots at once. `checks` are all health checks,
    `checks_doubled` those that came twice in a minute, and `checks_spread` is the coefficient of
    variation of checks per second, without the first second, which includes overdue ones.
    `large_forecasts` are early forecasts of `large_seconds`.
    """

    version: int
    devices: int
    lab_devices: int
    verified: int
    doubled: int
    failed_attempts: int
    retries: int
    large_seconds: float
    large_forecasts: Sequence[Foreseen]
    small_seconds: float
    small_ideal_seconds: float
    call_seconds: float
    runs_recorded: int
    checks: int
    checks_doubled: int
    checks_spread: float
    upgrade: UpgradeVerdict

    @property
    def is_good(self) -> bool:
        """Whether nothing is missing or doubled, in devices and rows, and the upgrade is good."""
        asked = self.devices + self.lab_devices
        doubled = self.doubled + self.checks_doubled
        is_there = self.verified == self.runs_recorded == asked
        return is_there and doubled == 0 and self.upgrade.is_good

    def as_json(self, **settings: Any) -> str:
        """Return one JSON object on one line, the settings used beside the figures."""
        return json.dumps(asdict(self) | settings)


def line_of(submission: Submission, /) -> Line:
    """Return a submission's progress; its time stops when its last run has ended."""
    return line_of_all([submission], label=submission.label)


def line_of_all(submissions: Sequence[Submission], /, *, label: str, staying: int = 0) -> Line:
    """Return the progress of submissions together, from the first submit.

    The time stops at the end of the last run, when only `staying` runs are left.
    """
    runs = Run.objects.filter(submission__in=submissions)
    counts = runs.aggregate(
        succeeded=Count("pk", filter=Q(state=State.SUCCEEDED)),
        failed=Count("pk", filter=Q(state__in=(State.FAILED, State.CANCELLED, State.EXPIRED))),
        running=Count("pk", filter=Q(state__in=ACTIVE)),
        retrying=Count("pk", filter=Q(state=State.RETRYING)),
        held=Count("pk", filter=Q(state=State.HELD)),
        ended_at=Max("ended_at"),
    )
    ended_at = counts.pop("ended_at")
    # All times are on PostgreSQL's clock.
    first, *_ = (
        Submission.objects.filter(pk__in=[one.pk for one in submissions])
        .annotate(now=Now())
        .order_by("created_at")
    )
    total = sum(one.run_count for one in submissions)
    is_done = ended_at and counts["succeeded"] + counts["failed"] + staying == total
    spent = (ended_at if is_done else first.now) - first.created_at
    return Line(label, total, seconds=spent.total_seconds(), **counts)


def judge(
    report: dict[str, Any],
    /,
    *,
    large: Submission,
    small: Submission,
    upgrade: UpgradeVerdict,
    slots: int,
    forecasts: Sequence[Foreseen],
) -> Verdict:
    """Return the verdict from the device server's report and both submissions' rows."""
    runs = Run.objects.filter(submission__in=(large, small))
    recorded = runs.aggregate(
        well=Count("pk", filter=Q(state=State.SUCCEEDED)),
        retries=Sum(F("attempt_count") - 1, filter=Q(attempt_count__gt=1), default=0),
    )
    return Verdict(
        version=report["version"],
        devices=large.run_count,
        lab_devices=small.run_count,
        verified=report["verified"],
        doubled=report["doubled"],
        failed_attempts=report["failed_attempts"],
        retries=recorded["retries"],
        large_seconds=round(line_of(large).seconds, 2),
        large_forecasts=forecasts,
        small_seconds=round(line_of(small).seconds, 2),
        small_ideal_seconds=round(_ideal_seconds(small, slots=max(1, slots // 2)), 2),
        call_seconds=round(call_seconds(large), 3),
        runs_recorded=recorded["well"],
        checks=report["checks"],
        checks_doubled=report["checks_doubled"],
        checks_spread=round(_spread(report["checks_a_second"][1:]), 2),
        upgrade=upgrade,
    )


def _spread(counts: Sequence[int]) -> float:
    """Return the coefficient of variation; 0.0 if all counts are 0."""
    return pstdev(counts) / mean(counts) if any(counts) else 0.0


def call_seconds(submission: Submission, /) -> float:
    """Return the mean run time."""
    taken = _times(submission)
    return mean(taken) if taken else 0.0


def _ideal_seconds(submission: Submission, *, slots: int) -> float:
    """Return how long its runs would take on `slots` of its own, the longest first."""
    times = sorted(_times(submission), reverse=True)
    calls = [Call("", "", 0, round(taken * SECOND)) for taken in times]
    at = submission.created_at
    load = Load(since=at, until=at, calls=calls, owners={}, slots=slots)
    return Replay(load).run().ended_at / SECOND


def _times(submission: Submission) -> list[float]:
    runs = Run.objects.filter(submission=submission, state=State.SUCCEEDED)
    return [
        (ended - started).total_seconds()
        for started, ended in runs.values_list("started_at", "ended_at")
        if started and ended
    ]


def ask_devices(url: str, /, *, what: str = "report", version: int) -> dict[str, Any]:
    """Return the device server's report about a version of the ruleset, or of the firmware."""
    asked = f"{url}/{what}?version={version}"
    return dict(urllib3.request("GET", asked, timeout=REPORT_SECONDS, retries=False).json())


def unfinished(submissions: Iterable[Submission], /) -> list[str]:
    """Return texts for a few runs that have not succeeded: what they wait for, or their error."""
    runs = Run.objects.filter(submission__in=submissions).exclude(state=State.SUCCEEDED)
    return [
        f"{run.id} ({run.state}): {run.why_waiting() or run.error_text or 'no reason known'}"
        for run in runs.order_by("id")[:NAMED]
    ]
