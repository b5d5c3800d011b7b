"""Which lines of a long log stay: the first and the last ones. Pure; the caller has a lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from jobs.catalog.run_log.lines import Line

CHUNK_BYTES: Final = 65_536
"""A chunk is full when its lines have so many bytes."""


class Batch(NamedTuple):
    """Lines without a gap that become one chunk."""

    first_line: int
    lines: list[Line]
    size: int
    is_first: bool
    """Whether they belong to the first ones of the log, which always stay."""


class LineBuffer:
    """The lines of an attempt that are not yet in a chunk.

    The first lines, up to `first_bytes` in the whole log, are all here until they are taken. Of the
    others the last ones are, up to `last_bytes`.
    """

    def __init__(self, *, first_bytes: int, last_bytes: int) -> None:
        self._room, self._most = first_bytes, last_bytes
        self._first: list[tuple[int, Line]] = []
        self._last: deque[tuple[int, Line]] = deque()
        self._last_size = 0
        self.count = 0
        """How many lines the attempt has logged."""

    def add(self, line: Line) -> None:
        self.count += 1
        if self._room > 0:
            self._room -= line.size
            self._first.append((self.count, line))
            return
        self._last.append((self.count, line))
        self._last_size += line.size
        while self._last_size > self._most:
            self._last_size -= self._last.popleft()[1].size

    def take(self) -> list[Batch]:
        """Return the lines that wait, and forget them."""
        first, last = self._first, list(self._last)
        self._first, self._last_size = [], 0
        self._last.clear()
        return [*_batches(first, is_first=True), *_batches(last, is_first=False)]


def _batches(numbered: list[tuple[int, Line]], *, is_first: bool) -> Iterator[Batch]:
    lines: list[Line] = []
    size = 0
    for place, (number, line) in enumerate(numbered):
        lines.append(line)
        size += line.size
        if size >= CHUNK_BYTES or place + 1 == len(numbered):
            yield Batch(number - len(lines) + 1, lines, size, is_first)
            lines, size = [], 0
