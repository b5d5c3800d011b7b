"""A cache in this process, limited by its number of spans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from jobs.windows.entries import Span


class SpanCache:
    """Tuples of spans by key; drops the least recently used first."""

    def __init__(self, most: int) -> None:
        """Hold up to `most` spans; each key counts as one more."""
        self.most = most
        self.count = 0
        self._found: OrderedDict[Hashable, tuple[Span, ...]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, find: Callable[[], tuple[Span, ...]]) -> tuple[Span, ...]:
        """Return the spans of a key; `find` computes those that are not cached.

        Threads do not wait for each other: two may compute the same.
        """
        with self._lock:
            known = self._found.get(key)
            if known is not None:
                self._found.move_to_end(key)
                return known
        found = find()
        with self._lock:
            if key not in self._found:
                self._found[key] = found
                self.count += len(found) + 1
            while self.count > self.most:
                _, gone = self._found.popitem(last=False)
                self.count -= len(gone) + 1
        return found

    def clear(self) -> None:
        with self._lock:
            self._found.clear()
            self.count = 0
