"""A limit on the client's side for a PostgreSQL that is gone without a word.

The server's own timeouts end with it, and TCP's do not help behind a proxy, whose connections stay
open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

from psycopg import Connection, OperationalError

STATEMENT_SECONDS: Final = 20.0
"""Longest statement of a worker's I/O thread, if the lease is long enough for it."""
LEAST_STATEMENT_SECONDS: Final = 5.0
"""A busy server needs as much, however short the lease."""


class Limits(NamedTuple):
    """How long a worker waits for PostgreSQL."""

    statement_seconds: float
    silent_seconds: float


def limits_within(lease_seconds: float) -> Limits:
    """Return limits that end before a lease: 20 s and 25 s, less with a lease shorter than 30 s.

    A worker that waits longer than its lease loses its runs while it waits. A lease below 7.5 s is
    shorter than the least limits, 5 s and 6.25 s.
    """
    statement = min(STATEMENT_SECONDS, max(LEAST_STATEMENT_SECONDS, lease_seconds * 2 / 3))
    # Later than the server's own limit: a server that works has answered by then.
    return Limits(statement, statement * 5 / 4)


class Gone(OperationalError):
    """The server was silent for too long; the connection is closed."""


def limit_silence(connection: Connection[Any], *, seconds: float) -> None:
    """Have a connection raise Gone when nothing has arrived for this many seconds of a wait.

    The time must be longer than its `statement_timeout`: a server that works answers before.
    """

    def give_up() -> None:
        connection.close()
        raise Gone(f"PostgreSQL was silent for {seconds:g} s; the connection is closed")

    watch_silence(connection, seconds=seconds, act=give_up)


def watch_silence(connection: Connection[Any], *, seconds: float, act: Callable[[], None]) -> None:
    """Call `act` after each span of this many seconds of a wait in which nothing has arrived.

    The wait raises what `act` raises.
    """
    # The class's: a pool gives the same connection again.
    wait = type(connection).wait

    def wait_watched(waiting: Any, *args: Any, **options: Any) -> Any:
        return wait(connection, _watched(waiting, seconds, act), *args, **options)

    connection.wait = wait_watched  # type: ignore[assignment, method-assign]


def _watched(
    waiting: Generator[Any, Any, Any], seconds: float, act: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """Yield what a wait of psycopg yields, which is told about each 0.1 s without an event."""
    try:
        state = next(waiting)
        silent_since = time.monotonic()
        while True:
            ready = yield state
            if not ready and time.monotonic() - silent_since > seconds:
                act()
                silent_since = time.monotonic()
            elif ready:
                silent_since = time.monotonic()
            state = waiting.send(ready)
    except StopIteration as end:
        return end.value
