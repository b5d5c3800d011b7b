"""An estimate of when many runs will be done, and which will not start. Pure.

`docs/use/forecast.md` says what it does not know.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from math import inf
from typing import Final

from jobs.core.phrases import Phrase, phrase
from jobs.forecast.course import (
    MOST_CALLS,
    OWN,
    Capacity,
    Group,
    Line,
    Retries,
    simulated,
)
from jobs.windows.entries import Span
from jobs.windows.openings import HORIZON, next_opening
from jobs.windows.spans import union

FIRST: Final = (datetime.min.replace(tzinfo=UTC),)
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

    `finishes_at` is None when not all end within a year, or when waves wait for an approval;
    `ends_at` is for those that do.
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
    awaiting: int = 0
    """Runs of waves that an approval releases: beside `count`, and in no other number."""
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
    def waiting(self) -> int:
        """All runs, also those of which nothing can be told."""
        return self.count + self.awaiting

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
    most: int = MOST_CALLS,
) -> Forecast:
    """Return how these runs will go if they are submitted at `now`.

    They are due at `not_before`; runs that have not started at `start_by` never do. Runs that fail
    are retried by `retries` in their openings, also after `start_by`.
    """
    due = max(not_before or now, now)
    lines = [Line(group, now=now, due=max(due, now + group.wait)) for group in groups]
    first, last, is_whole, has_end = inf, inf, False, True
    if capacity.slots > 0:
        course, is_whole = simulated(
            lines, capacity, now=now, start_by=start_by, retries=retries, most=most
        )
        first, last, has_end = course.first_start, course.last_end, course.has_end
    # Without an opening a run never starts. With one it may have expired, or may start later than
    # the simulation went.
    may_start = (start_by is not None and start_by - now < HORIZON) or not is_whole
    stuck = [0 if may_start and line.may_start() else line.left for line in lines]
    unapproved = [
        left if left and _would_open(line.group, now) else 0
        for line, left in zip(lines, stuck, strict=True)
    ]
    bare = [0 if group.calendars else group.count for group in groups]
    ends = is_whole and has_end
    never, left = sum(stuck), sum(line.left for line in lines)
    share = _share_of(capacity, at=first)
    opened = _open_seconds(lines)
    starts = sum((line.starts for line in lines), Counter[Span | None]())
    over, seconds = [line.left if line.may_start() else 0 for line in lines], []
    if capacity.slots > 0:
        over = [line.over() for line in lines]
        late = (line for line, many in zip(lines, over, strict=True) if many)
        seconds = [begin for line in late if (begin := line.begins(1))]
    found = Forecast(
        count=sum(group.count for group in groups),
        starts_at=_moment(now, first),
        finishes_at=_moment(now, 0 if last == inf else last) if ends and not never else None,
        ends_at=_moment(now, last),
        done=tuple(
            Done(span, starts[span])
            for span in sorted(starts, key=lambda one: (one.start, one.end) if one else FIRST)
        ),
        left_over=sum(over),
        next_opening=min(seconds, default=None),
        never=never,
        unapproved=sum(unapproved),
        expired=left - never if is_whole else 0,
        without_calendar=sum(bare),
        share=share,
        needed_seconds=sum(
            group.seconds * (group.count - many) for group, many in zip(groups, stuck, strict=True)
        ),
        # Not inf * 0, which is no number.
        open_seconds=inf if opened == inf else opened * capacity.slots * share,
        names={
            "never": _names(groups, stuck),
            "unapproved": _names(groups, unapproved),
            "without_calendar": _names(groups, bare),
        },
    )
    return replace(found, warnings=tuple(_warnings(found, capacity, is_whole=is_whole)))


def _share_of(capacity: Capacity, *, at: float) -> float:
    """Return the runs' part of the slots, by weight, when the first one starts."""
    if not capacity.slots or at == inf:
        return 0.0
    beside: dict[str, int] = defaultdict(int)
    for work in capacity.works:
        if work.since <= at and not work.wave:
            beside[work.owner] += work.count
    settings = {**capacity.others, OWN: capacity.own}
    claims = [
        (settings[name].weight, min(settings[name].cap or inf, asked))
        for name, asked in beside.items()
        if name != OWN
    ]
    # The runs could use all slots.
    claims.append((capacity.own.weight, min(capacity.own.cap or inf, capacity.slots)))
    ours = divided(capacity.slots, claims)[-1]
    lines = {work.submission for work in capacity.works if work.owner == OWN and work.since <= at}
    return ours / (1 + len(lines)) / capacity.slots


def divided(total: float, claims: Sequence[tuple[float, float]]) -> list[float]:
    """Divide a total among claims of (weight, most): by weight, and at most `most` for each.

    What a claim cannot use goes to the others, by their weights (max-min fairness).
    """
    got = [0.0] * len(claims)
    left, weights = total, sum(weight for weight, _ in claims)
    for index in sorted(range(len(claims)), key=lambda one: claims[one][1] / claims[one][0]):
        weight, most = claims[index]
        got[index] = min(most, left * weight / max(weight, weights))
        left -= got[index]
        weights -= weight
    return got


def _moment(now: datetime, seconds: float) -> datetime | None:
    return None if seconds == inf else now + timedelta(seconds=seconds)


def _open_seconds(lines: Sequence[Line]) -> float:
    """Return the total length of the first openings; overlaps count once."""
    firsts = [line.opening(0) for line in lines]
    if any(not line.group.calendars for line in lines):
        return inf
    spans = union(span for span in firsts if span)
    return sum((span.length for span in spans), timedelta(0)).total_seconds()


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


def _warnings(found: Forecast, capacity: Capacity, *, is_whole: bool) -> Iterable[Phrase]:
    if capacity.slots <= 0:
        yield phrase("No worker takes from this queue: nothing starts.")
    elif not is_whole:
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
