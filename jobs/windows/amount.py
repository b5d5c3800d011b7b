"""The limit of openings of a calendar: too many would stop each page and process that reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

from jobs.windows.entries import Entry
from jobs.windows.occurrences import FARTHEST, step_of
from jobs.windows.rrule import LAST, LAST_MOMENT, wall_starts
from jobs.windows.rules import SUB_DAILY, Rule, read_rule
from jobs.windows.wall_clock import moment_at

DAYS: Final = 62
MOST_OPENINGS: Final = 20_000
"""Occurrences of all windows and freezes of a calendar in 62 days."""
_SPAN: Final = timedelta(days=DAYS)
_LOOK: Final = timedelta(days=366)
_EPOCH: Final = datetime(1970, 1, 1)


def first_beyond(entries: Iterable[Entry], *, after: datetime) -> Entry | None:
    """Return the entry with which these exceed the limit of openings; None within the limit.

    Time is cut into spans of 62 days, and no span may have more than `MOST_OPENINGS` occurrences,
    approved or not. All single dates after `after` count; a rule counts for a year from its first
    occurrence after `after`. The limit bounds the cost. Raises WindowError for a broken rule.
    """
    counts: Counter[int] = Counter()
    wall = after.astimezone(UTC).replace(tzinfo=None)
    for entry in entries:
        for span, count in _counts(entry, after=wall):
            counts[span] += count
            if counts[span] > MOST_OPENINGS:
                return entry
    return None


def _counts(entry: Entry, *, after: datetime) -> Iterator[tuple[int, int]]:
    """Yield numbers of spans, each with a number of occurrences in it."""
    single = entry.added if entry.rule else (*entry.added, entry.starts)
    yield from ((_span_of(date), 1) for date in single if date + entry.duration > after)
    if not entry.rule:
        return
    rule = read_rule(entry.rule)
    first = max(after - entry.duration, entry.starts)
    if entry.valid_from is not None:
        first = max(first, _wall(entry.valid_from) - FARTHEST)
    last = LAST if entry.valid_until is None else _wall(entry.valid_until) + FARTHEST
    if rule.frequency in SUB_DAILY:
        yield from _elapsed(entry, rule, first=first, last=min(last, first + _LOOK))
        return
    found = wall_starts(entry.rule, entry.starts, first=first, last=min(last, LAST))
    begin = next(found, None)
    if begin is not None:
        yield _span_of(begin), 1
        until = begin + _LOOK
        yield from ((_span_of(wall), 1) for wall in takewhile(lambda wall: wall < until, found))


def _elapsed(
    entry: Entry, rule: Rule, *, first: datetime, last: datetime
) -> Iterator[tuple[int, int]]:
    """Yield the counts of a rule in hours or minutes, by arithmetic."""
    step = step_of(rule)
    if rule.until is not None:
        until = rule.until
        last = min(last, _wall(until) if until.tzinfo else until + FARTHEST)
    if rule.count is not None:
        last = min(last, _wall(moment_at(entry.starts, entry.zone)) + rule.count * step)
    while first < last:
        number = _span_of(first)
        end = min(last, _EPOCH + (number + 1) * _SPAN)
        yield number, -((first - end) // step)
        first = end


def _wall(moment: datetime) -> datetime:
    return min(moment, LAST_MOMENT).astimezone(UTC).replace(tzinfo=None)


def _span_of(wall: datetime) -> int:
    return (wall - _EPOCH) // _SPAN
