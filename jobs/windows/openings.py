"""When calendars are open: all of them at once, each by its windows and without its freezes.

Time is cut into blocks of a fortnight; what an entry does in a block, and what a calendar leaves
open of it, is found once and kept in this process. Both are values: who changes a calendar has
another one, and nothing that is kept can be out of date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Final

from jobs.windows.cache import SpanCache
from jobs.windows.entries import CalendarHours, Effect, Entry, Span
from jobs.windows.occurrences import FARTHEST, counting
from jobs.windows.search import Search
from jobs.windows.spans import intersection, joined, union, without

HORIZON: Final = timedelta(days=366)
"""So far ahead is looked for an opening, or for its end."""

_BLOCK: Final = timedelta(days=14)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_NONE: Final = timedelta(0)

# About 200 bytes a span.
_of_entries: Final = SpanCache(100_000)
_of_calendars: Final = SpanCache(100_000)


def open_spans(calendars: Iterable[CalendarHours], *, start: datetime, end: datetime) -> list[Span]:
    """Return the spans from `start` to `end` in which all calendars are open, in UTC, in order.

    Cut-offs are not subtracted. Without a calendar it is always open. Raises WindowError for an
    entry that `checked` would refuse for its rule.
    """
    return list(_walk(_unique(calendars), start=start, end=end))


def is_open(calendars: Iterable[CalendarHours], *, at: datetime, needed: timedelta = _NONE) -> bool:
    """Tell whether all are open at this moment, and for as long as is `needed` (the fit rule).

    What starts must be done by the close less the largest cut-off of them.
    """
    kept = _unique(calendars)
    until = at + max(needed, _NONE) + cut_off_of(kept)
    spans = _walk(kept, start=at, end=max(until, at + _TICK))
    first = next(spans, None)
    return first is not None and first.start == at and first.end >= until


def closes_at(calendars: Iterable[CalendarHours], *, at: datetime) -> datetime | None:
    """Return the end of the opening at this moment; the moment itself when it is not open.

    None when it does not end within a year. Cut-offs are not subtracted.
    """
    end = at + HORIZON
    first = next(_walk(_unique(calendars), start=at, end=end), None)
    if first is None or first.start > at:
        return at
    return None if first.end == end else first.end


def next_opening(
    calendars: Iterable[CalendarHours],
    *,
    after: datetime,
    needed: timedelta,
    horizon: timedelta = HORIZON,
) -> Span | None:
    """Return the first span from `after` on in which all calendars are open for `needed`.

    It is what is left of an opening from `after` on, measured without the largest cut-off,
    which its end still has; `after` itself when it is open already. None when there is none
    within the horizon: the caller reports it, because a run that can never start must not wait
    in silence.
    """
    kept = _unique(calendars)
    after = after.astimezone(UTC)
    enough = max(needed, _NONE) + cut_off_of(kept)
    return _search(kept, enough).first(after=after, end=after + horizon)


def open_minutes(calendars: Iterable[CalendarHours], *, start: datetime, end: datetime) -> float:
    """Return for how many minutes from `start` to `end` all calendars are open."""
    spans = _walk(_unique(calendars), start=start, end=end)
    return sum((span.length for span in spans), _NONE) / timedelta(minutes=1)


@lru_cache(maxsize=10_000)
def _search(calendars: tuple[CalendarHours, ...], enough: timedelta) -> Search:
    return Search(lambda start, end: _walk(calendars, start=start, end=end), enough)


def _unique(calendars: Iterable[CalendarHours]) -> tuple[CalendarHours, ...]:
    """Return each calendar once: one may apply by owner and by target."""
    return tuple(dict.fromkeys(calendars))


def cut_off_of(calendars: Sequence[CalendarHours]) -> timedelta:
    return max((calendar.cut_off for calendar in calendars), default=_NONE)


def _walk(
    calendars: tuple[CalendarHours, ...], *, start: datetime, end: datetime
) -> Iterator[Span]:
    """Yield the open spans, each whole within `start` and `end`, looking no further than asked."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    if start >= end:
        return iter(())
    if not calendars:
        return iter((Span(start, end),))
    return joined(_clipped(calendars, start=start, end=end))


def _clipped(
    calendars: tuple[CalendarHours, ...], *, start: datetime, end: datetime
) -> Iterator[Span]:
    for block in range((start - _EPOCH) // _BLOCK, -((_EPOCH - end) // _BLOCK)):
        for span in _all_open(calendars, block):
            if span.end <= start:
                continue
            if span.start >= end:
                return
            is_inside = span.start >= start and span.end <= end
            yield span if is_inside else span.clip(start=start, end=end)


def _all_open(calendars: tuple[CalendarHours, ...], block: int) -> Sequence[Span]:
    found: Sequence[Span] = _of_calendar(calendars[0], block)
    for calendar in calendars[1:]:
        if not found:
            break
        found = intersection(found, _of_calendar(calendar, block))
    return found


def _of_calendar(calendar: CalendarHours, block: int) -> tuple[Span, ...]:
    return _of_calendars.get((calendar, block), partial(_open_in, calendar, block))


def _open_in(calendar: CalendarHours, block: int) -> tuple[Span, ...]:
    """Return what a calendar leaves open of a block."""
    whole = _span_of(block)
    by_effect: dict[Effect, list[Span]] = {}
    for entry in calendar.entries:
        by_effect.setdefault(entry.effect, []).extend(_overlapping(entry, block, whole))
    windows = union(by_effect[Effect.WINDOW]) if Effect.WINDOW in by_effect else [whole]
    return tuple(without(windows, union(by_effect.get(Effect.FREEZE, []))))


def _overlapping(entry: Entry, block: int, whole: Span) -> Iterator[Span]:
    """Yield what lies in a block of the occurrences of an entry."""
    earliest = (whole.start - entry.duration - FARTHEST - _EPOCH) // _BLOCK
    for near in range(earliest, block + 1):
        for span in _of_entries.get((entry, near), partial(_starting_in, entry, near)):
            clipped = span.clip(start=whole.start, end=whole.end)
            if clipped.start < clipped.end:
                yield clipped


def _starting_in(entry: Entry, block: int) -> tuple[Span, ...]:
    # By their own starts: one that is clipped at its beginning still belongs to this block.
    whole = _span_of(block)
    return tuple(counting(entry, start=whole.start, end=whole.end))


def _span_of(block: int) -> Span:
    return Span(_EPOCH + block * _BLOCK, _EPOCH + (block + 1) * _BLOCK)
