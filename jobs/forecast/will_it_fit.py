"""Foresight: will it fit, and when will it be done? Nothing is written.

An estimate, of what waits now and of how long runs took: docs/use/forecast.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from celery import Task

from jobs.calendars.gate import calendars_of, spread_of
from jobs.calendars.hours import hours_of
from jobs.catalog.registry import resolve
from jobs.catalog.retry_policy import delay_after
from jobs.core import sql
from jobs.core.errors import OptionError, UnknownTask
from jobs.core.inputs import refuse_naive
from jobs.core.sql import now
from jobs.forecast.capacity import RunTimes, capacity_of, run_times_of, slots_of
from jobs.forecast.estimate import NAMES, Forecast, forecast
from jobs.forecast.retries import Retries
from jobs.forecast.simulation import Group
from jobs.models import Owner, Submission, Target, TargetGroup, WindowPolicy
from jobs.runs import preparation
from jobs.runs.storage import needed_of
from jobs.windows import open_spans

UNKNOWN_SECONDS: Final = 1.0
"""What a run is taken to need when nothing is known of its task and its owner."""
PROMOTION_SECONDS: Final = 1.0
"""What is tried again is queued by the first promotion after its wait."""
PACE_RUNS: Final = 20
"""So many runs that have ended lately, and so many that wait, tell how fast a submission goes."""
PACE_SECONDS: Final = 0.8
MOST_CORRECTED: Final = 10.0
"""A pace makes a forecast longer or shorter by this factor at most."""
SPREAD_PARTS: Final = 20
"""Starts that a calendar spreads are told in so many parts."""


def will_it_fit(
    task: Task | str,
    *,
    owner: Owner | str,
    targets: Sequence[str] | TargetGroup,
    arguments: Mapping[str, Any] | None = None,
    expected_seconds: float | None = None,
    at: datetime | None = None,
    **options: Any,
) -> Forecast:
    """Tell how a run for each of these targets would go, if they were submitted at a moment.

    The moment is now by default; others' work is that of now in any case. Options are those of
    `submit_many`. `expected_seconds` is how long a run takes, where you know better than the runs
    before. Targets that do not exist have the calendars of the owner. Raises what `submit_many`
    does for the task, the owner and the options, and for the arguments of one call, if given.
    """
    task = resolve(task)
    chosen = preparation.checked_options(options)
    names = _names(targets)
    if not 1 <= len(names) <= preparation.BATCH_LIMIT:
        raise OptionError("targets", f"are 1 to {preparation.BATCH_LIMIT:,}, not {len(names):,}")
    if at is not None:
        refuse_naive("at", at)
    if arguments is not None:
        preparation.encode_payload(task, (), arguments, embed={})
    owner = preparation.load_owner(owner)
    shared = preparation.run_defaults(task, owner, chosen)
    moment = shared.created_at if at is None else at
    later = moment - shared.created_at
    known = run_times_of(owner, task.name, shared.queue, now=shared.created_at)
    known = _expected(expected_seconds, known)
    seconds = known.seconds if known else UNKNOWN_SECONDS
    alike = Group(
        count=0, seconds=seconds, needed=needed_of(shared.policy), priority=shared.priority
    )
    found = forecast(
        list(_groups(_by_calendars(owner, names), alike)),
        capacity_of(owner, shared.queue, now=shared.created_at, seconds=seconds),
        now=moment,
        not_before=_resumed(owner, shared.due_at and shared.due_at + later, at=moment),
        start_by=shared.deadline_at and shared.deadline_at + later,
        retries=_retries(known, task, count=len(names)),
    )
    return _with_notes(found, owner, at=moment, is_known=known is not None, window=chosen.window)


def forecast_rest(submission: Submission, *, expected: RunTimes | None = None) -> Forecast | None:
    """Tell how what still waits of a submission will go; None when nothing does.

    `expected` is how its runs will go, where none of its owner and task has ended yet.
    """
    rows = sql.run("forecast/waiting_of_submission", {"submission": submission.pk})
    if not rows:
        return None
    owner, moment = submission.owner, now()
    known = run_times_of(owner, submission.task, submission.queue, now=moment, expected=expected)
    seconds = known.seconds if known else UNKNOWN_SECONDS
    groups = [
        part
        for row in rows
        for part in _groups(
            {tuple(row["calendars"]): (row["count"], row["names"] or ())},
            Group(
                count=0,
                seconds=seconds,
                needed=row["needed"],
                priority=row["priority"],
                wait=_until_queued(row["retried_at"], now=moment),
            ),
        )
    ]
    capacity = capacity_of(
        owner, submission.queue, now=moment, seconds=seconds, without=submission.pk
    )
    dues = [row["due_at"] for row in rows]
    deadlines = [row["deadline_at"] for row in rows]
    retries = None
    with suppress(UnknownTask):
        count = sum(row["count"] for row in rows)
        retries = _retries(known, resolve(submission.task), count=count)
    asked = partial(
        forecast,
        capacity=capacity,
        now=moment,
        not_before=_resumed(owner, None if None in dues else min(dues), at=moment),
        start_by=None if None in deadlines else max(deadlines),
        retries=retries,
    )
    found = asked(groups)
    pace = _pace(submission, groups)
    if pace is not None and found.share:
        # How fast it goes is known better than how long a run takes: with what others take, too.
        planned = capacity.slots * found.share / seconds
        factor = min(MOST_CORRECTED, max(1 / MOST_CORRECTED, planned / pace))
        found = asked([replace(group, seconds=group.seconds * factor) for group in groups])
    return _with_notes(found, owner, at=moment, is_known=known is not None, window="")


@dataclass(frozen=True, slots=True)
class FirstEstimate:
    """How many runs have not ended, and how long they take on all slots; `is_known` by history."""

    count: int
    length: timedelta
    is_known: bool


def first_estimate(submission: Submission) -> FirstEstimate | None:
    """Tell roughly how long the rest of a submission takes; None when nothing is left of it.

    Cheap: neither calendars nor others' work are looked at. Without a worker one slot is assumed.
    """
    counts = submission.progress
    left = counts.total - counts.ended
    if not left:
        return None
    known = run_times_of(submission.owner, submission.task, submission.queue, now=now())
    seconds = known.seconds if known else UNKNOWN_SECONDS
    rounds = math.ceil(left / max(1, slots_of(submission.queue)))
    return FirstEstimate(left, timedelta(seconds=rounds * seconds), is_known=known is not None)


def _pace(submission: Submission, groups: Sequence[Group]) -> float | None:
    """Return how many runs of a submission end in a second; None while that is not known.

    It is known of one that has waited for slots for a second and more, in one kind of opening.
    """
    [row] = sql.run("runs/ended_lately", {"submission": submission.pk})
    calendars = {group.calendars for group in groups}
    if row["count"] < PACE_RUNS or row["queued"] < PACE_RUNS or len(calendars) > 1:
        return None
    spans = open_spans(*calendars, start=row["since"], end=row["now"])
    seconds = sum((span.length for span in spans), timedelta(0)).total_seconds()
    return (row["count"] - 1) / seconds if seconds >= PACE_SECONDS else None


def _names(targets: Sequence[str] | TargetGroup) -> Sequence[str]:
    if isinstance(targets, TargetGroup):
        return list(targets.targets.order_by("name").values_list("name", flat=True))
    return preparation.as_list("targets", targets, elements="names, or a group")


def _expected(given: float | None, known: RunTimes | None) -> RunTimes | None:
    """Return what is known of the runs of a task, with the run time that a caller gives."""
    if given is None:
        return known
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 < given < math.inf:
        raise OptionError("expected_seconds", f"is a number above 0, not {given!r:.80}")
    return replace(known, seconds=given) if known else RunTimes(given)


def _until_queued(retried_at: datetime | None, *, now: datetime) -> timedelta:
    """Return the time until a run that waits to be tried again is queued."""
    if retried_at is None:
        return timedelta(0)
    return max(retried_at - now, timedelta(0)) + timedelta(seconds=PROMOTION_SECONDS / 2)


def _retries(known: RunTimes | None, task: Task, *, count: int) -> Retries | None:
    """Return how what fails at first goes on, if one such run is likely."""
    if known is None or known.retry_share * count < 1:
        return None
    policy = preparation.with_task_policy(task, {})
    waits = []
    for failed in range(1, policy["max_attempts"]):
        # As if each failure were by chance: is there one run that fails so often?
        if failed > known.failures and count * known.retry_share**failed < 1:
            break
        waits.append(PROMOTION_SECONDS / 2 + (delay_after(policy, failed, (), None) or 0.0))
    return Retries(part=known.retry_share, waits=waits, seconds=known.seconds)


ByCalendars = Mapping[tuple[int, ...], tuple[int, Sequence[str]]]
"""How many there are, and the names of some, by the calendars that apply."""


def _by_calendars(owner: Owner, names: Sequence[str]) -> ByCalendars:
    if owner.calendar_version == 0:
        return {(): (len(names), names[:NAMES])}
    rows = Target.objects.filter(owner=owner, name__in=set(names)).values_list("name", "id")
    ids = dict(rows)
    calendars = calendars_of(owner.pk, job_id=None, target_ids={None, *ids.values()})
    found: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in names:
        found[calendars[ids.get(name)]].append(name)
    return {key: (len(those), those[:NAMES]) for key, those in found.items()}


def _groups(counts: ByCalendars, alike: Group) -> Iterator[Group]:
    """Yield the groups of runs; where starts are spread, one for each part of the spread."""
    ids = {one for calendars in counts for one in calendars}
    hours = hours_of(ids)
    spread = spread_of(ids)
    for calendars, (count, names) in counts.items():
        most = max((spread.get(one, 0) for one in calendars), default=0)
        parts = min(SPREAD_PARTS, count) if most else 1
        for part in range(parts):
            yield replace(
                alike,
                count=count * (part + 1) // parts - count * part // parts,
                calendars=tuple(hours[one] for one in calendars if one in hours),
                late=timedelta(seconds=most * (part + 0.5) / parts) if most else timedelta(0),
                names=tuple(names) if part == 0 else (),
            )


def _resumed(owner: Owner, due_at: datetime | None, *, at: datetime) -> datetime | None:
    """Return when runs may start at the earliest, as their owner may be paused."""
    if owner.paused_until is None or not owner.is_paused(at=at):
        return due_at
    return max(due_at or at, owner.paused_until)


def _with_notes(
    found: Forecast, owner: Owner, *, at: datetime, is_known: bool, window: str
) -> Forecast:
    """Add what the arithmetic cannot know: a pause, a guess, a refusal to come."""
    notes = []
    if owner.is_paused(at=at) and owner.paused_until is None:
        notes.append(f"{owner.slug} is paused: this is how it goes when it is resumed now.")
    if window == WindowPolicy.REQUIRED and found.without_calendar:
        notes.append(f"A window is required, and {found.without_calendar:,} have no calendar.")
    if not is_known:
        notes.append(f"No run is known yet: each is taken to need {UNKNOWN_SECONDS:g} s.")
    return replace(found, warnings=(*found.warnings, *notes))
