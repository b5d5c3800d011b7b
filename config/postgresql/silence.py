"""Find out whether a PostgreSQL server answers, apart from a statement that takes its time.

The postmaster of a living server answers an SSLRequest at once, however busy its backends are.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Generator
from typing import Any, Final

from psycopg import OperationalError

PATIENCE_SECONDS: Final = 0.7
"""Silence on a connection after which the server is asked."""
ANSWER_SECONDS: Final = 0.5
"""Most time of the server's answer, and of a connect."""

# Length and code: "PostgreSQL: Frontend/Backend Protocol, SSLRequest".
_SSL_REQUEST: Final = struct.pack("!ii", 8, 80877103)
_DEFAULT_PORT: Final = 5432


class Silent(OperationalError):
    """The server does not answer; the connection is closed."""


def refuse_silent(host: str, port: int | str | None) -> None:
    """Raise Silent unless the server at a host, or in a socket's folder, answers.

    Without a host, or with several, libpq chooses the address, and nothing is asked.
    """
    if not host or "," in host:
        return
    try:
        with _connected(host, int(port or _DEFAULT_PORT)) as asked:
            asked.sendall(_SSL_REQUEST)
            if asked.recv(1):
                return
            problem = "it closes the connection"
    except OSError as error:
        problem = str(error) or type(error).__name__
    raise Silent(f"the PostgreSQL server at {host} does not answer: {problem}")


def watched(waiting: Generator[Any, Any, Any], connection: Any) -> Generator[Any, Any, Any]:
    """Yield what a wait of psycopg yields, and raise Silent when the server is silent, and dead.

    psycopg sends a false value about every 0.1 s in which nothing has arrived.
    """
    try:
        state = next(waiting)
        silent_since = time.monotonic()
        while True:
            ready = yield state
            if ready:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since >= PATIENCE_SECONDS:
                _refuse_dead(connection)
                silent_since = time.monotonic()
            state = waiting.send(ready)
    except StopIteration as end:
        return end.value


def _refuse_dead(connection: Any) -> None:
    info = connection.info
    try:
        refuse_silent(info.host, info.port)
    except Silent:
        connection.close()
        raise


def _connected(host: str, port: int) -> socket.socket:
    if not host.startswith(("/", "@")):
        return socket.create_connection((host, port), timeout=ANSWER_SECONDS)
    path = f"{host}/.s.PGSQL.{port}"
    asked = socket.socket(socket.AF_UNIX)
    asked.settimeout(ANSWER_SECONDS)
    try:
        # An abstract address begins with NUL.
        asked.connect(f"\x00{path[1:]}" if host.startswith("@") else path)
    except OSError:
        asked.close()
        raise
    return asked
