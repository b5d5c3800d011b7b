"""Forecasts for a submission, before and after it is made; see docs/use/forecast.md.

An estimate from what waits now and how long runs took. Nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Any, Final

from celery import Task
from django.db.models import Min

from jobs.catalog.registry import resolve
from jobs.catalog.retry_policy import delay_after
from jobs.catalog.typed import AnyTask
from jobs.core import sql
from jobs.core.errors import OptionError, UnknownTask
from jobs.core.inputs import refuse_naive
from jobs.core.phrases import phrase
from jobs.core.sql import now
from jobs.core.states import State
from jobs.forecast.capacity import RunTimes, capacity_of, run_times_of, slots_of
from jobs.forecast.course import OWN, Capacity, Group, Retries
from jobs.forecast.estimate import Forecast, forecast
from jobs.forecast.groups import by_calendars, groups_of
from jobs.forecast.measured import Pace, pace_of
from jobs.forecast.replay.load import setting_of
from jobs.forecast.waves import cut, in_order, in_waves, released_first, with_awaiting
from jobs.models import (
    Owner,
    Rollout,
    RolloutState,
    Submission,
    TargetGroup,
    WindowPolicy,
)
from jobs.rollouts.making import sizes_of
from jobs.rollouts.waves import Waves
from jobs.runs import preparation
from jobs.runs.storage import needed_of

UNKNOWN_SECONDS: Final = 1.0
"""The assumed run time when nothing is known of the task and the owner."""
PROMOTION_SECONDS: Final = 1.0
"""Time between promotions: the first one after its wait queues a retry, or releases a wave."""
LAG: Final = PROMOTION_SECONDS / 2
"""The mean time until the next promotion."""
MOST_CORRECTED: Final = 10.0
"""The pace makes a forecast longer or shorter by this factor at most."""
LATE: Final = 0.95
"""The probability that no run fails later than the latest end has it."""
MOST_FAILURES: Final = 20
"""Failures of one run that a forecast considers."""
MOST_ROUNDS: Final = 4
"""Forecasts until one ends before the recurring runs that it counts."""


def will_it_fit(
    task: AnyTask,
    *,
    owner: Owner | str,
    targets: Sequence[str] | TargetGroup,
    arguments: Mapping[str, Any] | None = None,
    expected_seconds: float | None = None,
    at: datetime | None = None,
    waves: Waves | None = None,
    **options: Any,
) -> Forecast:
    """Return how a run for each of these targets would go, if they were submitted at `at`.

    `at` is now by default; the others' work is always that of now. `waves` and `options` are those
    of `submit_many`. `expected_seconds` is the run time, if earlier runs do not show it. Targets
    that do not exist have the owner's calendars. Raises what `submit_many` raises for the task, the
    owner, the options and, if given, the arguments.
    """
    task = resolve(task)
    chosen = preparation.checked_options(options)
    names = _names(targets)
    sizes = sizes_of(waves, len(names))
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
    retries = _retries(known, task)
    capacity = capacity_of(owner, shared.queue, now=shared.created_at, seconds=seconds)
    pause = waves.pause if waves else None
    capacity = in_waves(capacity, pause.total_seconds() if pause else 0.0, lag=LAG)
    asked = partial(
        forecast,
        now=moment,
        not_before=_resumed(owner, shared.due_at and shared.due_at + later, at=moment),
        start_by=shared.deadline_at and shared.deadline_at + later,
        retries=retries,
    )
    if waves and waves.spread:
        names = in_order(owner, names, by=waves.spread)
    first, *rest = parts = cut(names, sizes)
    told = parts if waves is None or not waves.needs_approval else [first]
    groups = [
        replace(group, wave=number + 1 if number else 0)
        for number, counts in enumerate(by_calendars(owner, told))
        for group in groups_of(counts, alike)
    ]
    spread = known.spread if known else inf
    found, capacity = _beside(capacity, asked, groups, now=moment)
    found = _bounded(found, asked, groups, capacity, retries=retries, spread=spread)
    if told != parts:
        found = with_awaiting(found, sum(map(len, rest)), wave=2)
    return _with_notes(found, owner, at=moment, is_known=known is not None, window=chosen.window)


def forecast_rest(submission: Submission, *, expected: RunTimes | None = None) -> Forecast | None:
    """Return how the waiting runs of a submission will go; None when none wait.

    `expected` is used when no run of this owner and task has ended yet.
    """
    rollout = Rollout.objects.filter(pk=submission.pk).first()
    later = [] if rollout is None else rollout.waves[rollout.wave :]
    given = {"submission": submission.pk, "firsts": [wave["first"] for wave in later]}
    rows = sql.run("forecast/waiting_of_submission", given)
    if not rows:
        return None
    owner, moment = submission.owner, now()
    known = run_times_of(owner, submission.task, submission.queue, now=moment, expected=expected)
    seconds = known.seconds if known else UNKNOWN_SECONDS
    for row in rows:
        row["wait"] = _until_queued(row["retried_at"], now=moment)
    retries = None
    with suppress(UnknownTask):
        retries = _retries(known, resolve(submission.task))
    awaiting, between = 0, 0.0
    if rollout is not None:
        running = _rest_of_running(submission, seconds, retries, now=moment)
        rows, awaiting = released_first(rollout, rows, running=running, now=moment)
        between = float(rollout.between_seconds or 0)
    groups = [
        part
        for row in rows
        for part in groups_of(
            {tuple(row["calendars"]): (row["count"], row["names"] or ())},
            Group(
                count=0,
                seconds=seconds,
                needed=row["needed"],
                priority=row["priority"],
                wait=row["wait"],
                wave=row["wave"],
            ),
        )
    ]
    capacity = capacity_of(
        owner, submission.queue, now=moment, seconds=seconds, without=submission.pk
    )
    capacity = in_waves(capacity, between, lag=LAG)
    dues = [row["due_at"] for row in rows]
    deadlines = [row["deadline_at"] for row in rows]
    asked = partial(
        forecast,
        now=moment,
        not_before=_resumed(owner, None if None in dues else min(dues, default=None), at=moment),
        start_by=None if None in deadlines else max(deadlines, default=None),
        retries=retries,
    )
    found, coming = _beside(capacity, asked, groups, now=moment)
    pace = pace_of(submission, groups)
    spread = known.spread if known else inf
    if pace is not None and found.share:
        # The pace is more exact than run times: it includes what a start costs, and busy cores.
        slots = capacity.slots * (found.share if pace.received is None else pace.received)
        factor = slots / pace.per_second / seconds
        factor = min(MOST_CORRECTED, max(1 / MOST_CORRECTED, factor))
        groups = [replace(group, seconds=group.seconds * factor) for group in groups]
        if pace.took:
            capacity = _measured(capacity, pace, by=seconds * factor / pace.took, own=owner.slug)
        found, coming = _beside(capacity, asked, groups, now=moment)
        rest = (found.ends_at - moment).total_seconds() if found.ends_at else 0.0
        spread = pace.spread(rest)
    found = _bounded(found, asked, groups, coming, retries=retries, spread=spread)
    if rollout is not None and awaiting:
        found = with_awaiting(found, awaiting, wave=rollout.wave + 1)
    if rollout is not None and rollout.state in (RolloutState.STOPPED, RolloutState.PAUSED):
        note = phrase("Its waves wait until they are resumed: this is how it goes if that is now.")
        found = replace(found, warnings=(*found.warnings, note))
    return _with_notes(found, owner, at=moment, is_known=known is not None, window="")


def rough_forecast(submission: Submission) -> Forecast | None:
    """Return how the runs of a submission go that have not ended, by their number, slots and times.

    It is cheap, and says that it ignores calendars and others' work. None: all have ended.
    """
    counts, owner, moment = submission.progress, submission.owner, now()
    if counts.is_done:
        return None
    known = run_times_of(owner, submission.task, submission.queue, now=moment)
    alone = Capacity(slots=slots_of(submission.queue), own=setting_of(owner))
    seconds = known.seconds if known else UNKNOWN_SECONDS
    found = forecast([Group(count=counts.total - counts.ended, seconds=seconds)], alone, now=moment)
    found = _with_notes(found, owner, at=moment, is_known=known is not None, window="")
    rough = phrase("Rough: calendars, waves and the work of other owners are not counted.")
    return replace(found, warnings=(rough, *found.warnings))


def _beside(
    capacity: Capacity,
    asked: Callable[..., Forecast],
    groups: Sequence[Group],
    *,
    now: datetime,
) -> tuple[Forecast, Capacity]:
    """Return a forecast beside the recurring runs that come until its end, and with what capacity.

    They make the end later, and more of them come until then.
    """
    found, coming, until = asked(groups, capacity=capacity), capacity, 0.0
    for _ in range(MOST_ROUNDS if capacity.recurring else 0):
        rest = (found.ends_at - now).total_seconds() if found.ends_at else 0.0
        if rest <= until:
            break
        # Also for the latest end.
        until = 2 * rest
        coming = capacity.until(until)
        found = asked(groups, capacity=coming)
    return found, coming


def _measured(capacity: Capacity, pace: Pace, *, by: float, own: str) -> Capacity:
    """Return the capacity with other runs as long in a slot as was measured.

    `by` is the ratio of the time in a slot to the run time, which all runs of the queue have.
    """
    took = {OWN if slug == own else slug: seconds for slug, seconds in pace.others.items()}
    works = [
        replace(work, seconds=max(work.seconds, took.get(work.owner, 0.0)) * by)
        for work in capacity.works
    ]
    recurring = [
        replace(each, seconds=took.get(each.owner, each.seconds) * by)
        for each in capacity.recurring
    ]
    return replace(capacity, works=works, recurring=recurring)


def _bounded(
    found: Forecast,
    asked: Callable[..., Forecast],
    groups: Sequence[Group],
    capacity: Capacity,
    *,
    retries: Retries | None,
    spread: float,
) -> Forecast:
    """Add the times between which all end if runs take longer or shorter by `spread`.

    At the earliest none is retried, and each opening is seen at once. At the latest one of the last
    runs of each wave fails.
    """
    if spread == inf or found.finishes_at is None:
        return found
    late = retries and replace(retries, chance=LATE)
    ends = [
        asked(
            [replace(group, seconds=group.seconds * factor) for group in groups],
            replace(capacity, lag=lag),
            retries=tried,
        ).finishes_at
        for factor, lag, tried in (
            (1 / (1 + spread), 0.0, None),
            (1 + spread, PROMOTION_SECONDS, late),
        )
    ]
    known = [found.finishes_at, *(end for end in ends if end is not None)]
    # A later start may end earlier, if a failure then misses no opening.
    return replace(found, earliest_at=min(known), latest_at=None if None in ends else max(known))


def _names(targets: Sequence[str] | TargetGroup) -> Sequence[str]:
    if isinstance(targets, TargetGroup):
        return list(targets.targets.order_by("name").values_list("name", flat=True))
    return preparation.as_list("targets", targets, elements="names, or a group")


def _expected(given: float | None, known: RunTimes | None) -> RunTimes | None:
    """Return the known run times with the run time that the caller gives, if any."""
    if given is None:
        return known
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 < given < math.inf:
        raise OptionError("expected_seconds", f"is a number above 0, not {given!r:.80}")
    return replace(known, seconds=given) if known else RunTimes(given)


def _until_queued(retried_at: datetime | None, *, now: datetime) -> timedelta:
    if retried_at is None:
        return timedelta(0)
    return max(retried_at - now, timedelta(0)) + timedelta(seconds=LAG)


def _retries(known: RunTimes | None, task: Task) -> Retries | None:
    """Return how failed attempts are retried, if any attempt has failed."""
    if known is None or not known.retry_share:
        return None
    policy = preparation.with_task_policy(task, {})
    waits = [
        LAG + (delay_after(policy, failed, (), None) or 0.0)
        for failed in range(1, min(policy["max_attempts"], MOST_FAILURES + 1))
    ]
    return Retries(
        part=known.retry_share, waits=waits, seconds=known.failed_seconds, seen=known.failures
    )


def _rest_of_running(
    submission: Submission, seconds: float, retries: Retries | None, *, now: datetime
) -> float:
    """Return the seconds until the running runs of a wave end and the next one is released.

    One that runs ten times as long as others is taken to fail, and to be tried once more.
    """
    running = submission.runs.filter(state=State.RUNNING)
    began_at = running.aggregate(first=Min("started_at"))["first"]
    if began_at is None or retries is None or not retries.waits:
        return seconds + LAG
    age = (now - began_at).total_seconds()
    if age < 10 * seconds:
        return seconds + LAG
    return max(0.0, retries.seconds - age) + retries.waits[0] + seconds + LAG


def _resumed(owner: Owner, due_at: datetime | None, *, at: datetime) -> datetime | None:
    """Return when runs may start at the earliest, as their owner may be paused."""
    if owner.paused_until is None or not owner.is_paused(at=at):
        return due_at
    return max(due_at or at, owner.paused_until)


def _with_notes(
    found: Forecast, owner: Owner, *, at: datetime, is_known: bool, window: str
) -> Forecast:
    """Add warnings for a pause, missing calendars and unknown run times."""
    notes = []
    if owner.is_paused(at=at) and owner.paused_until is None:
        notes.append(
            phrase(
                "%(owner)s is paused: this is how it goes when it is resumed now.",
                owner=owner.slug,
            )
        )
    if window == WindowPolicy.REQUIRED and found.without_calendar:
        notes.append(
            phrase(
                "A window is required, and %(count)s have no calendar.",
                count=found.without_calendar,
            )
        )
    if not is_known:
        seconds = f"{UNKNOWN_SECONDS:g}"
        notes.append(
            phrase("No run is known yet: each is taken to need %(seconds)s s.", seconds=seconds)
        )
    return replace(found, warnings=(*found.warnings, *notes))
