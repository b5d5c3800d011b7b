"""What is between this process and PostgreSQL: a pooler, such as PgBouncer, or Django's pool.

A pooler that shares connections between transactions keeps no session: locks of a session, prepared
statements, and settings such as `lock_timeout` are lost, or another client gets them, without an
error. Web processes need none of these. Workers do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

Connect = Callable[[], "psycopg.Connection[Any]"]
"""Opens a connection with autocommit."""

_BACKEND: Final = "SELECT pg_backend_pid()"


def leave_pool() -> None:
    """Have this process and those that it forks connect without Django's own pool.

    A forked process would have the pool's sockets, without the threads that look after them.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.settings_dict["OPTIONS"].get("pool"):
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined] # not in the stubs
        del connection.settings_dict["OPTIONS"]["pool"]


def pooling_mode(connect: Connect) -> str:
    """Return "transaction" or "statement" if a pooler shares connections like this; else "".

    Nothing is changed. Without a pooler it costs one statement on one connection.
    """
    with closing(connect()) as first:
        backend = _backend_of(first)
        # A pooler gives its clients process ids of its own.
        if first.info.backend_pid == backend:
            return ""
        with closing(connect()) as second:
            try:
                second.execute("BEGIN")
            except psycopg.DatabaseError:
                # BEGIN is refused by a pooler that shares connections between statements.
                return "statement"
            # The second transaction has the connection that the first client got before, or the
            # first client gets another one now: a session would have kept it.
            if _backend_of(second) == backend or _backend_of(first) != backend:
                return "transaction"
    return ""


def _backend_of(connection: psycopg.Connection[Any]) -> int:
    [row] = connection.execute(_BACKEND).fetchall()
    return int(row[0])
