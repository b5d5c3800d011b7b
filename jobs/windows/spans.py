"""Operations on lists of spans, each ordered and without overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from jobs.windows.entries import Span

_START = attrgetter("start")


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the union of spans in any order; each is longer than 0."""
    return list(joined(sorted(spans, key=_START)))


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans, ordered by their starts; those that touch or overlap are joined."""
    open_one: Span | None = None
    for span in spans:
        if open_one is None:
            open_one = span
        elif span.start > open_one.end:
            yield open_one
            open_one = span
        elif span.end > open_one.end:
            open_one = Span(open_one.start, span.end)
    if open_one is not None:
        yield open_one


def intersection(some: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the parts that are in both."""
    found: list[Span] = []
    ours, theirs = iter(some), iter(others)
    one, other = next(ours, None), next(theirs, None)
    while one is not None and other is not None:
        # Not max() and min(): their calls took a third of the time of a search over a year.
        start = one.start if one.start > other.start else other.start  # noqa: FURB136 see above
        if one.end < other.end:
            if start < one.end:
                found.append(one if start is one.start else Span(start, one.end))
            one = next(ours, None)
        else:
            if start < other.end:
                found.append(other if start is other.start else Span(start, other.end))
            other = next(theirs, None)
    return found


def without(some: Sequence[Span], cut: Sequence[Span]) -> list[Span]:
    """Return the parts of the first that are not in the second."""
    found = []
    at = 0
    for span in some:
        start = span.start
        while at < len(cut) and cut[at].end <= start:
            at += 1
        ahead = at
        while ahead < len(cut) and cut[ahead].start < span.end:
            if start < cut[ahead].start:
                found.append(Span(start, cut[ahead].start))
            start = max(start, cut[ahead].end)
            ahead += 1
        if start < span.end:
            found.append(Span(start, span.end))
    return found
