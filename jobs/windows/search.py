"""Looking for an opening that is long enough, without looking twice at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.windows.entries import Span

Walk = Callable[[datetime, datetime], Iterator[Span]]
"""From a start to an end, what is open in between, in order, cut at both."""


@dataclass(frozen=True, slots=True)
class _Known:
    """From `since` until before `until` no opening is long enough; there `found` begins, if any."""

    since: datetime
    until: datetime
    found: Span | None


class Search:
    """The openings of some calendars that are at least `enough` long.

    It remembers the newest look: thousands of runs that wait for the same calendars ask about
    nearly the same moment. Threads may share it; at worst they look twice.
    """

    def __init__(self, walk: Walk, enough: timedelta) -> None:
        """Look along `walk` for openings of this length."""
        self.walk = walk
        self.enough = enough
        self._known: _Known | None = None

    def first(self, *, after: datetime, end: datetime) -> Span | None:
        """Return what is left of the first one from `after` on, cut at `end`; None if none."""
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
        """Look at what is not known yet, and remember that."""
        until = end
        for span in self.walk(start, end):
            if span.length >= self.enough:
                # One that is cut at the end has an end that is not known.
                if span.end < end:
                    self._known = _Known(since, span.start, span)
                return span
            if span.end == end:
                until = span.start
        self._known = _Known(since, max(until, since), None)
        return None
