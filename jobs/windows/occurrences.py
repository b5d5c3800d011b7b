"""The occurrences of a window or freeze, as spans in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from jobs.windows.entries import Effect, Entry, Span
from jobs.windows.rrule import wall_starts
from jobs.windows.rules import SUB_DAILY, Rule, read_rule
from jobs.windows.wall_clock import moment_at, shown_at

FARTHEST: Final = timedelta(hours=27)
"""No clock differs from UTC by more than this, and none is changed by more."""


def occurrences(entry: Entry, *, start: datetime, end: datetime) -> Iterator[Span]:
    """Yield the occurrences that count and overlap a span, ordered by their starts.

    They are clipped to the entry's validity, not to the span. Raises WindowError for a broken rule.
    """
    earliest = start - entry.duration - FARTHEST
    for span in counting(entry, start=earliest, end=end):
        if span.end > start and span.start < end:
            yield span


def counting(entry: Entry, *, start: datetime, end: datetime) -> Iterator[Span]:
    """Yield the occurrences that count and start in a span, clipped to the entry's validity."""
    for _, span in all_occurrences(entry, start=start, end=end):
        if is_approved(entry, span.start):
            clipped = span.clip(start=entry.valid_from, end=entry.valid_until)
            if clipped.start < clipped.end:
                yield clipped


def is_approved(entry: Entry, start: datetime) -> bool:
    """Say whether the occurrence with this unclipped start is approved, or needs no approval."""
    if entry.approved_starts is not None and start not in entry.approved_starts:
        return False
    approved = entry.approved
    return approved is None or any(span.start <= start < span.end for span in approved)


def all_occurrences(
    entry: Entry, *, start: datetime, end: datetime
) -> Iterator[tuple[datetime, Span]]:
    """Yield all occurrences that start in a span, in order: the start's wall time, and the span.

    Approved and valid or not. A window that lies completely in a gap of the clock is left out.
    """
    rule = read_rule(entry.rule) if entry.rule else None
    if rule is not None and rule.frequency in SUB_DAILY:
        found = _elapsed(entry, rule, start=start, end=end)
    else:
        found = _by_the_clock(entry, rule, start=start, end=end)
    spans = [
        (wall, span) for wall, span in found if start <= span.start < end and span.start < span.end
    ]
    yield from sorted(spans, key=lambda one: one[1].start)


def _by_the_clock(
    entry: Entry, rule: Rule | None, *, start: datetime, end: datetime
) -> Iterator[tuple[datetime, Span]]:
    first = (start - FARTHEST).replace(tzinfo=None)
    last = (end + FARTHEST).replace(tzinfo=None)
    until = rule.until if rule is not None and rule.until and rule.until.tzinfo else None
    walls = {wall for wall in entry.added if first <= wall < last}
    if rule is None:
        walls |= {entry.starts} if first <= entry.starts < last else set()
    else:
        for wall in wall_starts(entry.rule, entry.starts, first=first, last=last):
            if until is None or moment_at(wall, entry.zone) <= until:
                walls.add(wall)
    for wall in walls.difference(entry.excluded):
        yield wall, span_of(entry, wall)


def span_of(entry: Entry, wall: datetime) -> Span:
    """Return the span of an occurrence by its wall time.

    When the clock shows the end twice, a window ends at the first and a freeze at the last: in
    doubt nothing starts.
    """
    is_freeze = entry.effect is Effect.FREEZE
    return Span(
        moment_at(wall, entry.zone),
        moment_at(wall + entry.duration, entry.zone, last=is_freeze),
    )


def _elapsed(
    entry: Entry, rule: Rule, *, start: datetime, end: datetime
) -> Iterator[tuple[datetime, Span]]:
    """Yield the occurrences of a rule in hours or minutes, which counts elapsed time."""
    base, step = moment_at(entry.starts, entry.zone), step_of(rule)
    number = max(0, -((base - start) // step))
    moments = {moment_at(wall, entry.zone) for wall in entry.added}
    until = rule.until
    if until is not None and until.tzinfo is None:
        until = moment_at(until, entry.zone)
    while (moment := base + number * step) < end:
        if (rule.count is not None and number >= rule.count) or (until and moment > until):
            break
        moments.add(moment)
        number += 1
    moments -= {moment_at(wall, entry.zone) for wall in entry.excluded}
    if entry.effect is Effect.WINDOW:
        moments -= {moment_at(wall, entry.zone, last=True) for wall in entry.excluded}
    for moment in moments:
        yield (
            shown_at(moment, entry.zone),
            Span(moment, (moment + entry.duration).astimezone(UTC)),
        )


def step_of(rule: Rule) -> timedelta:
    unit = timedelta(hours=1) if rule.frequency == "HOURLY" else timedelta(minutes=1)
    return rule.interval * unit
