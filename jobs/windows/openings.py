"""When all of some calendars are open: in their windows, except in their freezes.

Time is cut into blocks of two weeks. This process caches the spans of each entry and the openings
of each calendar, by block. The caches are never stale: a changed calendar is another key.
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
"""How far ahead an opening, or its end, is searched."""
_BLOCK: Final = timedelta(days=14)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_NONE: Final = timedelta(0)

# About 200 bytes a span.
_of_entries: Final = SpanCache(100_000)
_of_calendars: Final = SpanCache(100_000)


def open_spans(calendars: Iterable[CalendarHours], *, start: datetime, end: datetime) -> list[Span]:
    """Return the spans from `start` to `end` in which all calendars are open, in UTC, in order.

    Cut-offs are not subtracted. Without a calendar, all is open. Raises WindowError.
    """
    return list(_walk(_unique(calendars), start=start, end=end))


def is_open(calendars: Iterable[CalendarHours], *, at: datetime, needed: timedelta = _NONE) -> bool:
    """Say whether all are open at a moment, and for `needed` from then on (the fit rule).

    A run must end before the close, minus the largest cut-off.
    """
    distinct = _unique(calendars)
    until = at + max(needed, _NONE) + cut_off_of(distinct)
    spans = _walk(distinct, start=at, end=max(until, at + _TICK))
    first = next(spans, None)
    return first is not None and first.start == at and first.end >= until


def closes_at(calendars: Iterable[CalendarHours], *, at: datetime) -> datetime | None:
    """Return the end of the opening at a moment; the moment itself when it is closed.

    None when the opening does not end within a year. Cut-offs are not subtracted.
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

    It starts at `after` when they are open then. The largest cut-off does not count for `needed`,
    but is part of the span. None when there is no such span within the horizon: the caller reports
    it, because a run that can never start must not wait in silence.
    """
    distinct = _unique(calendars)
    after = after.astimezone(UTC)
    enough = max(needed, _NONE) + cut_off_of(distinct)
    return _search(distinct, enough).first(after=after, end=after + horizon)


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
    """Yield the open spans between `start` and `end`, found on demand."""
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
    """Return the openings of a calendar in a block."""
    whole = _span_of(block)
    by_effect: dict[Effect, list[Span]] = {}
    for entry in calendar.entries:
        by_effect.setdefault(entry.effect, []).extend(_overlapping(entry, block, whole))
    windows = union(by_effect[Effect.WINDOW]) if Effect.WINDOW in by_effect else [whole]
    return tuple(without(windows, union(by_effect.get(Effect.FREEZE, []))))


def _overlapping(entry: Entry, block: int, whole: Span) -> Iterator[Span]:
    """Yield the parts of an entry's occurrences that lie in a block."""
    earliest = (whole.start - entry.duration - FARTHEST - _EPOCH) // _BLOCK
    for near in range(earliest, block + 1):
        for span in _of_entries.get((entry, near), partial(_starting_in, entry, near)):
            clipped = span.clip(start=whole.start, end=whole.end)
            if clipped.start < clipped.end:
                yield clipped


def _starting_in(entry: Entry, block: int) -> tuple[Span, ...]:
    # By their unclipped starts: each occurrence belongs to one block.
    whole = _span_of(block)
    return tuple(counting(entry, start=whole.start, end=whole.end))


def _span_of(block: int) -> Span:
    return Span(_EPOCH + block * _BLOCK, _EPOCH + (block + 1) * _BLOCK)
