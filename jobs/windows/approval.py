"""Which occurrences of a window are approved, by the decisions so far. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from jobs.windows.entries import Entry, Span
from jobs.windows.occurrences import FARTHEST, all_occurrences
from jobs.windows.rrule import FIRST_MOMENT, LAST_MOMENT
from jobs.windows.spans import union, without

_MOMENT: Final = timedelta(microseconds=1)
_REACHES: Final = (timedelta(days=1), timedelta(days=62), timedelta(days=366))


@dataclass(frozen=True, slots=True)
class DecisionFact:
    """A decision, on the occurrence that starts at a time or on all (None)."""

    is_approved: bool
    occurrence_at: datetime | None = None
    expires_at: datetime | None = None


def approved_spans(decisions: Iterable[DecisionFact]) -> tuple[Span, ...]:
    """Return the spans in which an occurrence must start to count; decisions are oldest first.

    A decision on all occurrences replaces all earlier ones, a decision on one occurrence those on
    the same. An approval that expires counts for occurrences that start before.
    """
    spans: list[Span] = []
    for one in decisions:
        until = LAST_MOMENT if one.expires_at is None else max(FIRST_MOMENT, one.expires_at)
        if one.occurrence_at is None:
            spans = [Span(FIRST_MOMENT, until)] if one.is_approved else []
            continue
        start = one.occurrence_at.astimezone(UTC)
        moment = [Span(start, start + _MOMENT)]
        if one.is_approved and start < until:
            spans = union([*spans, *moment])
        elif not one.is_approved:
            spans = without(spans, moment)
    return tuple(span for span in spans if span.start < span.end)


def start_of(entry: Entry, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the start of the occurrence at a moment, or else the start of the next one.

    Without an occurrence then, the first is None; without one within a year, the second too. When
    only a part of an occurrence is valid, the start of that part is taken as its start too.
    """
    for reach in _REACHES:
        start = at - entry.duration - FARTHEST
        found = [
            (clipped.start, span.start)
            for _, span in all_occurrences(entry, start=start, end=at + reach)
            if (clipped := span.clip(start=entry.valid_from, end=entry.valid_until)).length
        ]
        exact = [start for shown, start in found if at in (shown, start)]
        if exact:
            return max(exact), None
        if later := [shown for shown, _ in found if shown > at]:
            return None, min(later)
    return None, None
