"""What a running attempt writes to its row, and reads of it: by a connection of its own.

The task's own connection will not do: what is written in its open transaction is not visible until
the commit, is lost with a rollback, and would lock the row of the run meanwhile. So the first call
opens another connection, and the end of the attempt closes it. A task that calls nothing has none.

The row fences: each statement names the attempt's token, and writes nothing once another attempt
has begun or the run has ended.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections

from fleet import LogChunk
from jobs.core import log_events, sql
from jobs.core.errors import StaleAttempt

logger = logging.getLogger(__name__)

EVERY_SECONDS: Final = 1.0
"""Seconds between two writes of progress, and between two looks whether the run is cancelled."""
_SESSION: Final = "SET lock_timeout = '2s'; SET statement_timeout = '5s'"

Facts = Mapping[str, Any]


class AttemptStore:
    """The connection of one attempt. Thread-safe; a forked process gets a connection of its own."""

    def __init__(self, run_id: UUID, token: int) -> None:
        self._run_id = run_id
        self._token = token
        self._lock = threading.RLock()
        self._connection: Any = None
        self._pid = 0
        self._pending: Facts | None = None
        self._timer: threading.Timer | None = None
        self._written_at = -EVERY_SECONDS
        self._looked_at = -EVERY_SECONDS
        self._is_stopped = False
        self._is_stale = False

    def note(self, facts: Facts) -> None:
        """Write the attempt's progress, at once or within EVERY_SECONDS; the newest counts.

        Raises StaleAttempt. Without PostgreSQL, a later call writes it.
        """
        with self._lock:
            self._refuse_stale()
            self._pending = facts
            rest = self._written_at + EVERY_SECONDS - time.monotonic()
            if rest <= 0:
                self._flush()
                self._refuse_stale()
            elif self._timer is None:
                self._timer = threading.Timer(rest, self._flush_later)
                self._timer.daemon = True
                self._timer.start()

    def write_checkpoint(self, data: bytes, *, key: int) -> None:
        """Write the run's checkpoint now; raise StaleAttempt, or DatabaseError."""
        with self._lock:
            self._refuse_stale()
            self._write("catalog/write_checkpoint", {"data": data, "key": key})
            self._refuse_stale()

    def read_checkpoint(self) -> tuple[bytes, int] | None:
        """Return the run's checkpoint as it is stored, and its key; raise DatabaseError."""
        with self._lock:
            rows = self._query("catalog/read_attempt", {})
        if not rows or rows[0]["checkpoint"] is None:
            return None
        return bytes(rows[0]["checkpoint"]), rows[0]["checkpoint_key"]

    def write_log(self, chunks: Sequence[LogChunk], removed: Sequence[int]) -> bool:
        """Write chunks of the attempt's log, and remove others by their first lines.

        Returns False if the attempt is out of date. Raises DatabaseError. Repeating it is harmless.
        """
        with self._lock:
            if not self._is_stale:
                # By the names of the chunk's fields.
                columns = sql.columns(chunks, *LogChunk.__annotations__)
                self._write("catalog/write_log", {**columns, "removed": list(removed)})
            return not self._is_stale

    @property
    def is_to_stop(self) -> bool:
        """Whether the attempt is to stop, or is out of date; read every EVERY_SECONDS at most."""
        with self._lock:
            is_due = time.monotonic() - self._looked_at >= EVERY_SECONDS
            if not self._is_stopped and not self._is_stale and is_due:
                self._looked_at = time.monotonic()
                with suppress(DatabaseError, InterfaceError):
                    rows = self._query("catalog/read_attempt", {})
                    self._is_stopped = not (rows and rows[0]["is_wanted"])
            return self._is_stopped or self._is_stale

    def close(self) -> None:
        """Write the last progress, and close the connection. Raises nothing."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._pending is not None and not self._is_stale:
                self._flush()
            self._drop()

    def _flush_later(self) -> None:
        with self._lock:
            self._timer = None
            if self._pending is not None and not self._is_stale:
                self._flush()

    def _flush(self) -> None:
        """Write the progress that is pending; if PostgreSQL does not answer, it stays."""
        self._written_at = time.monotonic()
        try:
            self._write("catalog/write_progress", self._pending or {})
        except (DatabaseError, InterfaceError) as error:
            # Progress is not worth a failed task.
            log_events.PROGRESS_NOT_WRITTEN.log(logger, run_id=self._run_id, error=error)
        else:
            self._pending = None

    def _refuse_stale(self) -> None:
        if self._is_stale:
            raise StaleAttempt(str(self._run_id), self._token)

    def _write(self, name: str, facts: Facts) -> None:
        rows = self._query(name, facts)
        self._is_stale = not rows
        self._is_stopped = self._is_stopped or (bool(rows) and rows[0]["state"] == "cancelling")

    def _query(self, name: str, facts: Facts) -> list[dict[str, Any]]:
        """Run a statement; once more on a new connection, if the one that is open has broken."""
        parameters = {**facts, "id": self._run_id, "token": self._token}
        was_open = self._connection is not None and self._pid == os.getpid()
        try:
            return self._once(name, parameters)
        except (DatabaseError, InterfaceError):
            is_broken = self._connection is None or not self._connection.is_usable()
            self._drop()
            if not (was_open and is_broken):
                raise
        return self._once(name, parameters)

    def _once(self, name: str, parameters: Facts) -> list[dict[str, Any]]:
        with self._open().cursor() as cursor:
            cursor.execute(sql.statement(name), parameters)
            names = [column.name for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _open(self) -> Any:
        if self._pid != os.getpid():
            # The parent of a forked process uses its socket: it is not closed from here.
            self._connection, self._pid = None, os.getpid()
        if self._connection is None:
            self._connection = connections.create_connection(DEFAULT_DB_ALIAS)
            # A timer's thread, and those of the task, may use it; the lock takes turns.
            self._connection.inc_thread_sharing()
            with self._connection.cursor() as cursor:
                cursor.execute(_SESSION)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            with suppress(DatabaseError, InterfaceError):
                self._connection.close()
        self._connection = None
