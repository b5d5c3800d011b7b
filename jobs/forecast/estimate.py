"""An estimate of when many runs will be done, and which will not start. Pure.

It uses expected run times and what waits now; docs/use/forecast.md says what it does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from math import inf
from typing import Final

from jobs.core.phrases import Phrase, phrase
from jobs.forecast.retries import Retries, end_of_retries
from jobs.forecast.shares import Capacity
from jobs.forecast.simulation import Course, Group, Opened, Simulation
from jobs.windows.entries import Span
from jobs.windows.openings import HORIZON, cut_off_of, next_opening

NAMES: Final = 10
"""Names of targets in a warning."""


@dataclass(frozen=True, slots=True)
class Done:
    """How many runs start in an opening; None stands for runs without a calendar."""

    opening: Span | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """How `count` runs will go, of which `never` and `expired` will not start.

    `finishes_at` is None when not all end within a year; `ends_at` is for those that do.
    """

    count: int
    starts_at: datetime | None = None
    finishes_at: datetime | None = None
    ends_at: datetime | None = None
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    """The times between which all end, by how exactly run times and slots are known; None: not."""
    done: tuple[Done, ...] = ()
    left_over: int = 0
    """Not started in the first openings; `next_opening` is the start of the second ones."""
    next_opening: datetime | None = None
    never: int = 0
    """Runs that no remaining opening within a year is long enough for."""
    unapproved: int = 0
    """Those of `never` that could start in an opening that is not approved yet."""
    expired: int = 0
    without_calendar: int = 0
    share: float = 0
    """The runs' part of the slots, by weight, when the first one starts."""
    needed_seconds: float = 0
    """Worker seconds that the runs need; `open_seconds` is what the first openings offer."""
    open_seconds: float = inf
    warnings: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The first targets of `never`, `unapproved` and `without_calendar`."""

    @property
    def windows(self) -> int:
        return sum(done.opening is not None for done in self.done)


def forecast(
    groups: Sequence[Group],
    capacity: Capacity,
    *,
    now: datetime,
    not_before: datetime | None = None,
    start_by: datetime | None = None,
    retries: Retries | None = None,
) -> Forecast:
    """Return how these runs will go if they are submitted at `now`.

    They are due at `not_before`; runs that have not started at `start_by` never do. The order of
    starts is by priority, then by the start of the opening, then by needed time. Runs that fail are
    retried by `retries` in their openings, also after `start_by`.
    """
    horizon = now + HORIZON
    end = (min(start_by, horizon) if start_by else horizon) - now
    due = max(not_before or now, now)
    openings = partial(_opened, now=now, due=due, horizon=horizon)
    simulation = Simulation(
        groups,
        replace(capacity, slots=max(0, capacity.slots)),
        openings=openings,
        end=end.total_seconds(),
    )
    firsts = [openings(group, 0.0) for group in groups]
    course = simulation.run() if capacity.slots > 0 else _idle_course(groups, firsts)
    found = _forecast_of(groups, capacity, course, firsts, now=now, is_bounded=end < HORIZON)
    if retries is None:
        return found
    last = _moment(now, end_of_retries(groups, course, retries, openings))
    return replace(
        found,
        ends_at=max(found.ends_at, last) if found.ends_at and last else found.ends_at,
        finishes_at=max(found.finishes_at, last) if found.finishes_at and last else None,
    )


def _opened(
    group: Group, after: float, *, now: datetime, due: datetime, horizon: datetime
) -> Opened | None:
    """Return the first opening from a moment on, as the gate will find it."""
    due = max(due, now + group.wait)
    earliest = max(0.0, (due - now).total_seconds())
    if after > (horizon - now).total_seconds():
        return None
    if not group.calendars:
        return Opened(earliest, inf, earliest, inf) if after <= earliest else None
    moment = max(due, now + timedelta(seconds=after))
    found = next_opening(group.calendars, after=moment, needed=group.needed)
    if found is None or found.start > horizon:
        return None
    last = found.end - cut_off_of(group.calendars) - group.needed
    begins = found.start if found.start <= moment else min(found.start + group.delay, last)
    times = (found.start, found.end, begins, last)
    return Opened(*((one - now).total_seconds() for one in times))


def _idle_course(groups: Sequence[Group], firsts: Sequence[Opened | None]) -> Course:
    """Return the result of a simulation without slots: no run starts."""
    could = [group.count if opened else 0 for group, opened in zip(groups, firsts, strict=True)]
    return Course(left=[group.count for group in groups], over=could, is_whole=False)


def _forecast_of(
    groups: Sequence[Group],
    capacity: Capacity,
    course: Course,
    firsts: Sequence[Opened | None],
    *,
    now: datetime,
    is_bounded: bool,
) -> Forecast:
    at = partial(_moment, now)
    # Without an opening a run never starts. With one it may have expired, or may start later than
    # the simulation went.
    may_start = is_bounded or not course.is_whole
    stuck = [
        0 if may_start and first else left for left, first in zip(course.left, firsts, strict=True)
    ]
    unapproved = [
        left if left and _would_open(group, now) else 0
        for group, left in zip(groups, stuck, strict=True)
    ]
    bare = [0 if group.calendars else group.count for group in groups]
    never, left = sum(stuck), sum(course.left)
    opened = _open_seconds(firsts)
    needed = sum(group.count * group.seconds for group in groups) - sum(
        group.seconds * count for group, count in zip(groups, stuck, strict=True)
    )
    found = Forecast(
        count=sum(group.count for group in groups),
        starts_at=at(course.first_start),
        finishes_at=at(course.last_end) if course.is_whole and not never else None,
        ends_at=at(course.last_end) if course.starts else None,
        done=_done(course, at),
        left_over=sum(course.over),
        next_opening=at(course.second),
        never=never,
        unapproved=sum(unapproved),
        expired=left - never if course.is_whole else 0,
        without_calendar=sum(bare),
        share=course.share,
        needed_seconds=needed,
        # Not inf * 0, which is no number.
        open_seconds=inf if opened == inf else opened * capacity.slots * course.share,
        names={
            "never": _names(groups, stuck),
            "unapproved": _names(groups, unapproved),
            "without_calendar": _names(groups, bare),
        },
    )
    return replace(found, warnings=tuple(_warnings(found, capacity, course)))


def _moment(now: datetime, seconds: float) -> datetime | None:
    return None if seconds == inf else now + timedelta(seconds=seconds)


def _done(course: Course, at: Callable[[float], datetime | None]) -> tuple[Done, ...]:
    """Return how many start in each opening, together for all groups."""
    counts: Counter[tuple[float, float]] = Counter()
    for (_, opened), count in course.starts.items():
        counts[opened.opens, opened.closes] += count
    return tuple(
        Done(_span(at(opens), at(closes)), counts[opens, closes])
        for opens, closes in sorted(counts)
    )


def _span(start: datetime | None, end: datetime | None) -> Span | None:
    return Span(start, end) if start is not None and end is not None else None


def _open_seconds(firsts: Iterable[Opened | None]) -> float:
    """Return the total length of the first openings; overlaps count once."""
    total, until = 0.0, 0.0
    for opened in sorted((one for one in firsts if one), key=lambda one: one.opens):
        total += max(0.0, opened.closes - max(opened.opens, until))
        until = max(until, opened.closes)
    return total


def _would_open(group: Group, now: datetime) -> bool:
    """Say whether a long enough opening only needs an approval."""
    calendars = [
        replace(
            calendar,
            entries=tuple(replace(entry, approved=None) for entry in calendar.entries),
        )
        for calendar in group.calendars
        if calendar.entries
    ]
    is_asked = any(entry.approved is not None for one in group.calendars for entry in one.entries)
    return is_asked and next_opening(calendars, after=now, needed=group.needed) is not None


def _names(groups: Sequence[Group], counts: Sequence[int]) -> tuple[str, ...]:
    named = (group.names for group, count in zip(groups, counts, strict=True) if count)
    return tuple(islice(chain.from_iterable(named), NAMES))


def _warnings(found: Forecast, capacity: Capacity, course: Course) -> Iterable[Phrase]:
    if capacity.slots <= 0:
        yield phrase("No worker takes from this queue: nothing starts.")
    elif not course.is_whole:
        yield phrase("Forecast stopped: too many events. The end time is unknown.")
    if found.unapproved:
        yield phrase(
            "Waiting for a window that is not approved: %(count)s.", count=found.unapproved
        )
    if found.never > found.unapproved:
        count = found.never - found.unapproved
        yield phrase(
            "Without an opening within a year that is long enough: %(count)s.", count=count
        )
    if found.expired:
        yield phrase("%(count)s do not start before their deadline.", count=found.expired)
    if found.left_over and capacity.slots > 0:
        yield _left_over(found)
    if found.needed_seconds > found.open_seconds > 0:
        yield phrase(
            "The windows are scarce: %(needed)s worker seconds are needed, and the first openings"
            " have %(open)s (%(slots)s slots, of which %(percent)s%% are theirs).",
            needed=round(found.needed_seconds),
            open=round(found.open_seconds),
            slots=capacity.slots,
            percent=f"{100 * found.share:.0f}",
        )


def _left_over(found: Forecast) -> Phrase:
    count = found.left_over
    if found.next_opening is None:
        return phrase("%(count)s do not fit into their first opening.", count=count)
    return phrase(
        "%(count)s do not fit into their first opening; the next is %(at)s UTC.",
        count=count,
        at=f"{found.next_opening:%Y-%m-%d %H:%M}",
    )
