"""A month in days: for each day, the pieces of all marks and the open hours. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise, starmap
from operator import attrgetter
from typing import Any, Final

from jobs.windows import Span
from jobs.windows.spans import joined
from jobs.windows.wall_clock import moment_at, shown_at

FIRST: Final = date(1970, 1, 1)
LAST: Final = date(2099, 12, 31)
MOST_PIECES: Final = 12
"""Pieces that a day shows."""
MOST_ALIKE: Final = 3
"""Pieces of one window, or openings, that a day lists one by one; more are shown as a count."""
MOST_STRIPS: Final = 48
"""Strips of a day; if there are more, those less than 1 % of the day apart are joined."""
ALL_DAY: Final = "00:00–24:00"
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Mark:
    """A span in a month, and what the page shows of it."""

    span: Span
    text: Any


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a mark in a day, with its hours by the clock of the zone."""

    hours: str
    text: Any


@dataclass(frozen=True, slots=True)
class Strip:
    """An open part of a day, in percent of its length."""

    left: float
    width: float


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    is_in_month: bool
    is_today: bool
    is_past: bool
    pieces: tuple[Piece, ...]
    more_pieces: int
    strips: tuple[Strip, ...]
    open_hours: tuple[str, ...]
    planned: int
    whole: Span
    marks: Sequence[Mark]
    """All marks of the day, also those without a piece."""

    @property
    def is_open_all_day(self) -> bool:
        return self.open_hours == (ALL_DAY,)


def days_of(month: date) -> list[date]:
    """Return the days of all weeks, Monday to Sunday, that a month is part of."""
    first = month.replace(day=1)
    start = first - timedelta(days=first.weekday())
    after = next_month(first)
    count = (after - start).days
    return [start + _DAY * number for number in range(-(-count // 7) * 7)]


def next_month(month: date) -> date:
    return (month.replace(day=1) + timedelta(days=32)).replace(day=1)


def previous_month(month: date) -> date:
    return (month.replace(day=1) - _DAY).replace(day=1)


def range_of(month: date, zone: str) -> Span:
    """Return the span of all days of these weeks, by a zone's clock."""
    days = days_of(month)
    return Span(_midnight(days[0], zone), _midnight(days[-1] + _DAY, zone))


def day_of(text: str) -> date | None:
    """Return the day in an address, such as 2026-11-25; None for any other text."""
    try:
        asked = date.fromisoformat(text)
    except ValueError:
        return None
    return asked if f"{asked}" == text and FIRST < asked < LAST else None


def whole_day(day: date, zone: str) -> Span:
    """Return the span of a day by a zone's clock."""
    return Span(_midnight(day, zone), _midnight(day + _DAY, zone))


def month_of(text: str, *, today: date) -> date:
    """Return the first day of the month in an address, such as 2026-11; by default this month."""
    try:
        asked = date.fromisoformat(f"{text}-01")
    except ValueError:
        return today.replace(day=1)
    # Away from the limits, so that a month before and one after can be shown.
    return asked if FIRST + 32 * _DAY < asked < LAST - 62 * _DAY else today.replace(day=1)


def month(
    month_start: date,
    *,
    zone: str,
    marks: Iterable[Mark],
    open_spans: Sequence[Span],
    now: datetime,
    planned: Mapping[date, int],
) -> list[list[Day]]:
    """Return the weeks of a month; each day has the marks that overlap it, by start."""
    today = shown_at(now, zone).date()
    shown = days_of(month_start)
    midnights = [_midnight(day, zone) for day in [*shown, shown[-1] + _DAY]]
    days = []
    for day, marks_of_day, whole in zip(
        shown, _by_day(marks, midnights), starmap(Span, pairwise(midnights)), strict=True
    ):
        # Openings are ordered and disjoint: only those that overlap the day are read.
        first = bisect_right(open_spans, whole.start, key=attrgetter("end"))
        end = bisect_left(open_spans, whole.end, key=attrgetter("start"))
        opened = [cut for span in open_spans[first:end] for cut in _cut(span, whole)]
        pieces = pieces_of(marks_of_day, whole, zone)
        days.append(
            Day(
                day=day,
                is_in_month=(day.year, day.month) == (month_start.year, month_start.month),
                is_today=day == today,
                is_past=day < today,
                pieces=pieces[:MOST_PIECES],
                more_pieces=max(0, len(pieces) - MOST_PIECES),
                strips=strips_of(opened, whole),
                open_hours=_collapsed(opened, whole, zone),
                planned=planned.get(day, 0),
                whole=whole,
                marks=marks_of_day,
            )
        )
    return [days[number : number + 7] for number in range(0, len(days), 7)]


def _by_day(marks: Iterable[Mark], midnights: Sequence[datetime]) -> list[list[Mark]]:
    days: list[list[Mark]] = [[] for _ in midnights[1:]]
    for mark in sorted(marks, key=lambda mark: (mark.span.start, mark.span.end)):
        first = max(1, bisect_right(midnights, mark.span.start))
        for day in range(first, bisect_left(midnights, mark.span.end) + 1):
            if day <= len(days):
                days[day - 1].append(mark)
    return days


def pieces_of(marks: Iterable[Mark], whole: Span, zone: str) -> tuple[Piece, ...]:
    """Return the pieces of a day in order; many pieces of one window are joined, with a count."""
    cuts: dict[Any, list[Span]] = {}
    for mark in marks:
        if found := _cut(mark.span, whole):
            cuts.setdefault(mark.text, []).extend(found)
    found_pieces = [
        (alike[0].start, max(cut.end for cut in alike), Piece(hours, text))
        for text, every in cuts.items()
        for alike in ([every] if len(every) > MOST_ALIKE else [[cut] for cut in every])
        for hours in _collapsed(alike, whole, zone)
    ]
    return tuple(piece for _, _, piece in sorted(found_pieces, key=lambda one: one[:2]))


def _collapsed(cuts: Sequence[Span], whole: Span, zone: str) -> tuple[str, ...]:
    """Return the hours of spans in order; for many spans one text, such as 39 × 00:00–19:30."""
    if len(cuts) <= MOST_ALIKE:
        return tuple(_hours(cut, whole, zone) for cut in cuts)
    every = Span(cuts[0].start, max(cut.end for cut in cuts))
    return (f"{len(cuts)} × {_hours(every, whole, zone)}",)


def each_piece_of(marks: Iterable[Mark], whole: Span, zone: str) -> list[Piece]:
    """Return the pieces of a day, one for each mark, in the order of the marks."""
    return [
        Piece(_hours(cut, whole, zone), mark.text)
        for mark in marks
        for cut in _cut(mark.span, whole)
    ]


def strips_of(opened: Sequence[Span], whole: Span) -> tuple[Strip, ...]:
    """Return the strips of ordered spans in a day; near ones are joined when there are many."""
    if len(opened) > MOST_STRIPS:
        wide = (Span(cut.start, cut.end + whole.length / 100) for cut in opened)
        opened = [span.clip(end=whole.end) for span in joined(wide)]
    percent = whole.length / 100
    return tuple(
        Strip(round((cut.start - whole.start) / percent, 3), round(cut.length / percent, 3))
        for cut in opened
    )


def _cut(span: Span, whole: Span) -> list[Span]:
    cut = span.clip(start=whole.start, end=whole.end)
    return [cut] if cut.start < cut.end else []


def _hours(cut: Span, whole: Span, zone: str) -> str:
    start = "00:00" if cut.start == whole.start else f"{shown_at(cut.start, zone):%H:%M}"
    end = "24:00" if cut.end == whole.end else f"{shown_at(cut.end, zone):%H:%M}"
    return f"{start}–{end}"


def _midnight(day: date, zone: str) -> datetime:
    return moment_at(datetime.combine(day, time()), zone).astimezone(UTC)
