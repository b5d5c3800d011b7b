"""Runs that go through the simulation of plans (`replay/simulation.py`), beside other work. Pure.

Of many runs each call stands for several, which take their time one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil, inf, log
from operator import attrgetter
from typing import Final

from jobs.forecast.replay.load import SECOND, Call, Hours, Load, OwnerSetting
from jobs.forecast.replay.results import Outcome
from jobs.forecast.replay.simulation import Replay
from jobs.rollouts.waves import MOST_WAVES
from jobs.windows.entries import CalendarHours, Span
from jobs.windows.openings import HORIZON, cut_off_of, next_opening

MOST_CALLS: Final = 400
"""Calls that stand for the runs, and as many again for the work of others."""
MOST_EVENTS: Final = 40_000
"""Events after which the simulation stops, with an incomplete result."""
LEAST_SLOTS: Final = 25
"""Slots that are left if each stands for several."""
COMING_PARTS: Final = 60
"""Parts of a time into which the recurring runs that come in it are split."""
OWN: Final = ""
"""The owner of the runs, and their submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal runs. `delay` is their delay by a spread of starts."""

    count: int
    seconds: float
    """The expected time of one run in a slot."""
    calendars: tuple[CalendarHours, ...] = ()
    needed: timedelta = timedelta(0)
    priority: int = 5
    delay: timedelta = timedelta(0)
    wait: timedelta = timedelta(0)
    """None of the runs may start before this time from now."""
    names: tuple[str, ...] = ()
    """The names of a few targets."""
    wave: int = 0
    """0 for released runs, else the wave: it is released when all before it have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Other runs of a submission, each of so many seconds, from `since` (seconds from now) on."""

    count: int
    seconds: float
    owner: str = OWN
    submission: str = "other"
    since: float = 0
    wave: int = 0
    """As that of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """Runs of jobs with an interval, that come all the time."""

    per_second: float
    seconds: float
    """How long each is in a slot."""
    owner: str = OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The slots, the settings of owners, and the other work: what waits, and what comes later.

    `own` are the settings of the runs' owner.
    """

    slots: int
    own: OwnerSetting = field(default_factory=OwnerSetting)
    others: Mapping[str, OwnerSetting] = field(default_factory=dict)
    works: Sequence[Work] = ()
    between: Mapping[str, float] = field(default_factory=dict)
    """Seconds between waves, by submission; that of the runs is OWN."""
    recurring: Sequence[Recurring] = ()
    lag: float = 0
    """Seconds from a release or an opening until runs are queued that waited for it."""

    def until(self, seconds: float) -> Capacity:
        """Return the capacity with the recurring runs that come until then as work."""
        coming = [
            Work(
                count=round(each.per_second * seconds * (part + 1) / COMING_PARTS)
                - round(each.per_second * seconds * part / COMING_PARTS),
                seconds=each.seconds,
                owner=each.owner,
                submission="recurring",
                since=seconds * (part + 0.5) / COMING_PARTS,
            )
            for each in self.recurring
            for part in range(COMING_PARTS)
        ]
        return replace(self, works=[*self.works, *(work for work in coming if work.count)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often attempts fail (`part`, from 0 to 1), and when the next attempt follows.

    `waits` has the seconds from each failure to the next attempt; no run fails more often. Each
    wave has failures of its own: those behind it wait for its last run.
    """

    part: float
    waits: Sequence[float]
    chance: float = 0.5
    """The probability that no run of a wave fails as late as the last one that is told."""
    seconds: float = 0.0
    """How long the last attempts that fail take, if that is longer than for others."""
    seen: int = 0
    """The most failures that a run has had; without it failures are independent of each other."""

    def most_of(self, count: int) -> int:
        """Return how often one of `count` runs fails, if the chance of that is not too small."""
        least = -log(self.chance)
        likely = [
            failures
            for failures in range(1, len(self.waits) + 1)
            if count * self.part ** (1 if failures <= self.seen else failures) >= least
        ]
        return max(likely, default=0)


class Line:
    """A group with its openings, and what became of its runs."""

    def __init__(self, group: Group, *, now: datetime, due: datetime) -> None:
        self.group = group
        self.now = now
        self.due = due
        self.starts: Counter[Span | None] = Counter()
        self._openings: list[Span] = []
        self._search = self._found()

    @property
    def left(self) -> int:
        return self.group.count - self.starts.total()

    def opening(self, number: int) -> Span | None:
        """Return an opening by its number, from 0 on."""
        while len(self._openings) <= number and (found := next(self._search, None)):
            self._openings.append(found)
        return self._openings[number] if number < len(self._openings) else None

    def may_start(self) -> bool:
        return not self.group.calendars or self.opening(0) is not None

    def begins(self, number: int) -> datetime | None:
        """Return when runs may start in an opening, by their spread."""
        found = self.opening(number)
        if found is None:
            return None
        last = found.end - cut_off_of(self.group.calendars) - self.group.needed
        return max(self.due, min(found.start + self.group.delay, last))

    def start(self, at: datetime, count: int) -> None:
        number = 0
        if not self.group.calendars:
            self.starts[None] += count
            return
        while (found := self.opening(number)) and found.end < at:
            number += 1
        self.starts[found] += count

    def over(self) -> int:
        """Return how many have not started in the first opening."""
        first = self.opening(0)
        return self.group.count - self.starts[first] if first else 0

    def _found(self) -> Iterator[Span]:
        after = self.due
        while self.group.calendars and after - self.now <= HORIZON:
            found = next_opening(self.group.calendars, after=after, needed=self.group.needed)
            if found is None or found.start - self.now > HORIZON:
                return
            yield found
            after = found.end


class Course(Outcome):
    """What happens to the runs in the simulation."""

    def __init__(self, load: Load, parts: Mapping[int, tuple[Line, int]]) -> None:
        """`parts` has the line and the number of runs that a call stands for, by its id."""
        super().__init__(load)
        self.parts = parts
        self.first_start = self.last_end = inf
        self.has_end = True
        """False: a retry has no opening."""

    def miss(self, call: Call, *, is_final: bool) -> None:
        super().miss(call, is_final=is_final)
        if is_final and call.submission == OWN and id(call) not in self.parts:
            self.has_end = False

    def start(self, call: Call, wait: int, *, at: int) -> None:
        super().start(call, wait, at=at)
        if call.submission != OWN:
            return
        line, count = self.parts.get(id(call), (None, 0))
        if line is not None:
            self.first_start = min(self.first_start, at / SECOND)
            line.start(self.load.since + timedelta(microseconds=at), count)
        end = (at + call.run) / SECOND
        self.last_end = end if self.last_end == inf else max(self.last_end, end)


def simulated(
    lines: Sequence[Line],
    capacity: Capacity,
    *,
    now: datetime,
    start_by: datetime | None,
    retries: Retries | None,
    most: int,
) -> tuple[Course, bool]:
    """Let the runs go through the fair queue beside the other work; say whether to the end."""
    count = sum(line.group.count for line in lines)
    lag = timedelta(seconds=capacity.lag)
    each = max(1, ceil(count / most))
    # Of a sample of runs on many slots, each slot stands for several, too.
    merged = max(1, min(each, capacity.slots // LEAST_SLOTS, capacity.own.cap or each))
    by = None if start_by is None else max(1, _micros(start_by - now))
    parts: dict[int, tuple[Line, int]] = {}
    calls: list[Call] = []
    sizes: Counter[int] = Counter()
    for line in lines:
        sizes[line.group.wave] += line.group.count
    for line in lines:
        # A small wave has calls of its own: one call of 30 runs takes as long as 30 in a row.
        size = sizes[line.group.wave]
        some = each if len(sizes) == 1 else max(merged, ceil(size * len(sizes) / most))
        least = 1 if len(sizes) > 1 else 0
        for call, part in _calls(line, each=some, merged=merged, start_by=by, least=least, lag=lag):
            calls.append(call)
            parts[id(call)] = line, part
    if retries is not None:
        for wave, size in sizes.items():
            _fail([call for call in calls if call.wave == wave], retries, count=size)
    own = replace(capacity.own, rate=capacity.own.rate * len(calls) / max(1, count))
    others = _others(capacity.works, most=most, merged=merged)
    load = Load(
        since=now,
        until=now + HORIZON,
        calls=sorted([*calls, *others], key=attrgetter("at")),
        owners={name: _merged(one, merged) for name, one in (*capacity.others.items(), (OWN, own))},
        slots=max(1, round(capacity.slots / merged)),
        gaps={
            (submission, wave): round((seconds + capacity.lag) * SECOND)
            for submission, seconds in capacity.between.items()
            for wave in range(1, MOST_WAVES + 1)
        },
    )
    course = Course(load, parts)
    return course, Replay(load, outcome=course, most=MOST_EVENTS).run_to(load.until)


def _calls(
    line: Line, *, each: int, merged: int, start_by: int | None, least: int, lag: timedelta
) -> Iterator[tuple[Call, int]]:
    """Yield calls for the runs of a group, and how many of them each stands for.

    Each takes as long as `least` runs at least: a wave ends with its last run.
    """
    group, many = line.group, ceil(line.group.count / each)
    part = max(least, group.count / max(1, many) / merged)
    at = _micros(line.due - line.now)
    if group.wave:
        at, start_by = 0, start_by and max(1, start_by - at)
    hours = Hours(group.calendars, group.needed, group.delay + lag) if group.calendars else None
    for place in range(many):
        call = Call(
            OWN,
            OWN,
            at,
            round(group.seconds * part * SECOND),
            submission=OWN,
            priority=group.priority,
            start_by=start_by,
            hours=hours,
            wave=group.wave,
        )
        yield call, group.count * (place + 1) // many - group.count * place // many


def _fail(calls: Sequence[Call], retries: Retries, *, count: int) -> None:
    """Let calls of a wave fail and be tried again, evenly over all.

    The last failing run is placed where the probability is `retries.chance` that no later run
    fails as often. Only its attempts take `retries.seconds`: the mean time of runs, which all
    others have, includes failed attempts.
    """
    failing: dict[int, int] = {}
    longer = set()
    for failures in range(1, retries.most_of(count) + 1 if calls else 1):
        part = retries.part**failures
        many = max(1, round(len(calls) * part))
        behind = min(-log(retries.chance) / (count * part), 0.5)
        for place in range(1, many + 1):
            index = max(0, int(len(calls) * (place / many - behind)))
            failing[index] = failures
        longer.add(index)
    for index, failures in failing.items():
        tail = calls[index]
        run, failed = tail.run, max(tail.run, round(retries.seconds * SECOND))
        for wait in retries.waits[:failures]:
            tail.run = failed if index in longer else run
            tail.then = replace(tail, at=round(wait * SECOND), start_by=None, run=run)
            tail = tail.then


def _others(works: Sequence[Work], *, most: int, merged: int) -> Iterator[Call]:
    """Yield calls for the work of others; the same seconds, in fewer of them.

    The first half takes as long as one run: a long call would keep its slot from ours.
    """
    each = max(1, ceil(sum(work.count for work in works) / most))
    for work in works:
        many = ceil(work.count / each)
        left = work.count / merged
        for place in range(many):
            part = left / (many - place) if 2 * place >= many else min(1.0, left / many)
            left -= part
            yield Call(
                work.owner,
                f"{work.owner} {work.submission}",
                round(work.since * SECOND),
                round(work.seconds * part * SECOND),
                submission=work.submission,
                wave=work.wave,
            )


def _merged(setting: OwnerSetting, slots: int) -> OwnerSetting:
    return replace(setting, cap=max(1, round(setting.cap / slots)) if setting.cap else 0)


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
