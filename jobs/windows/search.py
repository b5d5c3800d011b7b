"""Search for an opening that is long enough; each span of time is searched once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.windows.entries import Span

Walk = Callable[[datetime, datetime], Iterator[Span]]
"""Yields the openings from a start to an end, clipped to both, in order."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The result of a search: no long enough opening starts in `since <= time < until`.

    `found` starts at `until`, or is None if the search ended there.
    """

    since: datetime
    until: datetime
    found: Span | None


class Search:
    """The openings of some calendars that are at least `enough` long.

    It caches the last search: thousands of runs that wait for the same calendars ask for nearly the
    same moment. Threads may share it; at worst two search the same.
    """

    def __init__(self, walk: Walk, enough: timedelta) -> None:
        self.walk = walk
        self.enough = enough
        self._known: _Known | None = None

    def first(self, *, after: datetime, end: datetime) -> Span | None:
        """Return the first one between `after` and `end`, clipped to both; None if none."""
        known, start = self._known, after
        if known is not None and known.since <= after:
            if known.found is not None:
                left = known.found.clip(start=after)
                if left.length >= self.enough and left.length:
                    cut = left.clip(end=end)
                    return cut if cut.length >= self.enough and cut.length else None
            start = max(after, known.until)
        return self._look(start, since=after, end=end)

    def _look(self, start: datetime, *, since: datetime, end: datetime) -> Span | None:
        """Search from `start`, and cache the result."""
        until = end
        for span in self.walk(start, end):
            if span.length >= self.enough:
                # The end of a clipped opening is not known: do not cache it.
                if span.end < end:
                    self._known = _Known(since, span.start, span)
                return span
            if span.end == end:
                until = span.start
        self._known = _Known(since, max(until, since), None)
        return None
