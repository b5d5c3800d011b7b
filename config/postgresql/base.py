"""The backend: Django's own, and in web processes with limited waits for a silent server.

The postmaster of a living server answers an SSLRequest at once, however busy its backends are.
"""

from __future__ import annotations

import socket
import struct
from functools import partial
from typing import Any, Final

from django.db.backends.postgresql import base
from psycopg import OperationalError

from jobs.system.patience import watch_silence

PATIENCE_SECONDS: Final = 0.7
"""Silence on a connection after which the server is asked."""
ANSWER_SECONDS: Final = 0.5
"""Most time of the server's answer, and of a connect."""

# Length and code: "PostgreSQL: Frontend/Backend Protocol, SSLRequest".
_SSL_REQUEST: Final = struct.pack("!ii", 8, 80877103)
_DEFAULT_PORT: Final = 5432


class Patience:
    """Whether this process waits for a silent server as long as PostgreSQL's settings say."""

    is_limited = False


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection; in web processes it raises OperationalError when the server is silent."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not Patience.is_limited:
            return super().get_new_connection(conn_params)
        _refuse_silent(str(conn_params.get("host") or ""), conn_params.get("port"))
        made = super().get_new_connection(conn_params)
        watch_silence(made, seconds=PATIENCE_SECONDS, act=partial(_refuse_dead, made))
        return made


class Silent(OperationalError):
    """The server does not answer; the connection is closed."""


def limit_patience() -> None:
    """Have each new connection of this process give a silent server up within 2 s."""
    Patience.is_limited = True


def _refuse_dead(connection: Any) -> None:
    """Close a connection whose server does not answer, and raise Silent."""
    try:
        _refuse_silent(connection.info.host, connection.info.port)
    except Silent:
        connection.close()
        raise


def _refuse_silent(host: str, port: int | str | None) -> None:
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
