"""The log of one attempt: its lines until they are written, and which chunks stay."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from fleet import LogChunk
from jobs.catalog.attempt_store import AttemptStore
from jobs.catalog.run_log import writer
from jobs.catalog.run_log.buffer import Batch, LineBuffer
from jobs.catalog.run_log.lines import LINE_BYTES, Line, encoded, fitted
from jobs.core import log_events
from jobs.core.conf import setting
from jobs.core.crypto import Place, log_field, seal

logger = logging.getLogger(__name__)

REPORT_BYTES: Final = 160_000
"""Bytes of chunks that go with the report of the attempt's end."""
END_SECONDS: Final = 2.0
"""How long the end of an attempt waits for its lines to be written, if they are more."""
DUE_SECONDS: Final = 0.25
"""The age of a line at which it is written."""
CHUNKS_AT_ONCE: Final = 16
_PART_CHARACTERS: Final = 65_536
"""The longest printed text without a line break that is waited for."""


class AttemptLog:
    """Takes lines from any thread; its task is never blocked, and gets no error."""

    def __init__(
        self, *, owner: str, run_id: UUID, token: int, redactor: Callable[[], Any]
    ) -> None:
        self.run_id = run_id
        self.is_closed = False
        self._place, self._token = Place(owner, run_id), token
        self._redactor: Callable[[], Callable[[str], str]] = redactor
        self._redacted: Callable[[str], str] | None = None
        # Re-entrant: what a line's text is made from may log.
        self._lock = threading.RLock()
        self._most = setting("RUN_LOG_LAST_BYTES")
        self._buffer = LineBuffer(first_bytes=setting("RUN_LOG_FIRST_BYTES"), last_bytes=self._most)
        self._parts: dict[tuple[str, int], str] = {}
        self._since: float | None = None
        # Of the writer's:
        self._writing = threading.Lock()
        self._flushed: threading.Event | None = None
        self._store: AttemptStore | None = None
        self._waiting: list[LogChunk] = []
        self._removed: list[int] = []
        self._last: deque[tuple[int, int]] = deque()
        self._has_failed = self._is_refused = self._is_left = False

    def add(self, level: int, name: str, text: str, at: float) -> None:
        """Take a line."""
        if len(text) > LINE_BYTES:
            text = fitted(text, self._redact)
        with self._lock:
            if self.is_closed:
                return
            self._buffer.add(Line(at, level, name, text))
            if self._since is None:
                self._since = time.monotonic()
                writer.watch(self)

    def print(self, level: int, name: str, text: str) -> None:
        """Take what is printed; a line is complete at its break."""
        key = (name, threading.get_ident())
        *lines, rest = (self._parts.pop(key, "") + text).split("\n")
        now = time.time()
        for line in lines:
            # As on a terminal: what follows a carriage return is written over what was there.
            self.add(level, name, line.rstrip("\r").rpartition("\r")[2], now)
        rest = rest[rest.rstrip("\r").rfind("\r") + 1 :]
        if len(rest) > _PART_CHARACTERS:
            self.add(level, name, rest, now)
        elif rest:
            self._parts[key] = rest

    def flush_if_due(self) -> None:
        """Write the lines that are old enough. Called by the writer's thread only."""
        is_due = self._since is not None and time.monotonic() - self._since >= DUE_SECONDS
        if is_due or self._waiting:
            self._flush()

    def end(self) -> Sequence[LogChunk]:
        """Close the log; return the chunks that the report of the attempt's end is to bring."""
        for (name, _thread), rest in tuple(self._parts.items()):
            self.add(logging.INFO, name, rest, time.time())
        with self._lock:
            self.is_closed = True
        if not self._buffer.count:
            return ()
        until = time.monotonic() + END_SECONDS
        if self._writing.acquire(timeout=END_SECONDS):
            self._encode()
            self._writing.release()
            # A report brings chunks, and removes none.
            if self._removed or sum(len(chunk.data) for chunk in self._waiting) > REPORT_BYTES:
                self._flushed = threading.Event()
                writer.hurry()
                self._flushed.wait(until - time.monotonic())
        writer.forget(self)
        self._is_left = True
        if self._writing.acquire(timeout=max(0.0, until - time.monotonic())):
            self._drop_store()
            self._writing.release()
        # A chunk that is being written may come twice: its key is the same.
        return () if self._is_refused else _ends(tuple(self._waiting), REPORT_BYTES)

    def _flush(self) -> None:
        with self._writing:
            try:
                self._encode()
                while (self._waiting or self._removed) and not self._is_refused:
                    self._write(self._waiting[:CHUNKS_AT_ONCE], self._removed[:])
            except (DatabaseError, InterfaceError) as error:
                # The lines stay, as many as there is room for.
                if not self._has_failed:
                    facts = {"run_id": self.run_id, "error": error}
                    log_events.RUN_LOG_NOT_WRITTEN.log(logger, **facts)
                self._has_failed = True
            finally:
                if self._flushed is not None:
                    self._flushed.set()
                if self._is_left:
                    self._drop_store()

    def _write(self, chunks: Sequence[LogChunk], removed: Sequence[int]) -> None:
        if self._store is None:
            self._store = AttemptStore(self.run_id, self._token)
        if not self._store.write_log(chunks, removed):
            self._is_refused = True
        self._waiting = self._waiting[len(chunks) :]
        self._removed = self._removed[len(removed) :]

    def _encode(self) -> None:
        """Make chunks of the lines that wait; drop those that no longer stay."""
        with self._lock:
            batches = self._buffer.take()
            self._since = None
        for batch in batches:
            self._waiting.append(self._chunk(batch))
            if not batch.is_first:
                self._last.append((batch.first_line, batch.size))
        left_over = sum(size for _first, size in self._last) - self._most
        while left_over > 0 and len(self._last) > 1:
            first, size = self._last.popleft()
            left_over -= size
            kept = [chunk for chunk in self._waiting if chunk.first_line != first]
            if len(kept) == len(self._waiting):
                self._removed.append(first)
            self._waiting = kept

    def _chunk(self, batch: Batch) -> LogChunk:
        lines = [
            Line(at, level, name, fitted(text, self._redact))
            for at, level, name, text in batch.lines
        ]
        field = log_field(self._token, batch.first_line)
        sealed = seal(encoded(lines), field=field, place=self._place)
        return LogChunk(batch.first_line, len(lines), lines[0].at, sealed.key, sealed.data)

    def _redact(self, text: str) -> str:
        if self._redacted is None:
            self._redacted = self._redactor()
        return self._redacted(text)

    def _drop_store(self) -> None:
        if self._store is not None:
            with suppress(Exception):
                self._store.close()
            self._store = None


def _ends(chunks: Sequence[LogChunk], most: int) -> Sequence[LogChunk]:
    """Return the first and the last chunks, of together at most so many bytes."""
    if sum(len(chunk.data) for chunk in chunks) <= most:
        return chunks
    first: list[LogChunk] = []
    last: deque[LogChunk] = deque()
    room, others = most // 2, deque(chunks)
    while others and len(others[0].data) <= room:
        room -= len(others[0].data)
        first.append(others.popleft())
    room += most // 2
    while others and len(others[-1].data) <= room:
        room -= len(others[-1].data)
        last.appendleft(others.pop())
    return [*first, *last]
