"""Run SQL and statement files on the caller's connection; advisory locks; PostgreSQL's clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.core.locks import LockClass

P = ParamSpec("P")
R = TypeVar("R")

_JOBS: Final = Path(__file__).parent.parent
_SHARED: Final = re.compile(r"\{(\w+/\w+)\}")
_BOUNDS: Final = """
SELECT set_config('lock_timeout', '2s', true),
    set_config('idle_in_transaction_session_timeout', '30s', true)
"""


@cache
def statement(name: str) -> str:
    """Return the text of `jobs/<package>/sql/<statement>.sql`, named `<package>/<statement>`.

    Such a name in braces stands for the text of that file, a part that statements share.
    """
    package, _, leaf = name.partition("/")
    text = (_JOBS / package / "sql" / f"{leaf}.sql").read_text()
    return _SHARED.sub(lambda match: statement(match[1]), text)


def run(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run one statement file and return its rows by column name."""
    return query(statement(name), parameters)


def query(sql: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Run SQL and return its rows by column name."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        if cursor.description is None:
            return []
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def wrap_first(connection: BaseDatabaseWrapper, wrapper: Callable[..., Any]) -> None:
    """Run a wrapper around each statement of a connection, before all other wrappers.

    A caller's `connection.execute_wrapper` block removes the last wrapper when it ends.
    """
    if wrapper not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, wrapper)


def keeps_session(connection: BaseDatabaseWrapper) -> bool:
    """Say whether DATABASES has no DISABLE_SERVER_SIDE_CURSORS.

    That is Django's mark of a pooler that shares connections between transactions, where a session
    has no settings and no prepared statements of its own.
    """
    return not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS", False)


def array(values: Iterable[object]) -> str:
    """Return ids, numbers or plain words as the text of an array; psycopg would be slow."""
    return f"{{{','.join(['NULL' if value is None else str(value) for value in values])}}}"


def binaries(values: Iterable[bytes | None]) -> str:
    """Return bytes as the text of a PostgreSQL array."""
    return array(None if value is None else f'"\\\\x{value.hex()}"' for value in values)


def columns(rows: Iterable[Sequence[Any]], *names: str) -> dict[str, list[Any]]:
    """Return the columns of some rows by these names, as parameters for unnest()."""
    kept = list(rows)
    return {name: [row[place] for row in kept] for place, name in enumerate(names)}


def bound_waits() -> None:
    """Limit this transaction: wait 2 s for a lock at most, end after 30 s without a statement."""
    query(_BOUNDS)


def alone(verb: Callable[P, R]) -> Callable[P, R | None]:
    """Run one call of a verb at a time in the installation; a concurrent call returns None."""
    key = [LockClass.VERB, f"{verb.__module__}.{verb.__qualname__}"]

    @wraps(verb)
    def sole(*args: P.args, **kwargs: P.kwargs) -> R | None:
        # A session lock, because a round has many transactions.
        [row] = query("SELECT pg_try_advisory_lock(%s, hashtext(%s)) AS got", key)
        if not row["got"]:
            return None
        try:
            return verb(*args, **kwargs)
        finally:
            # The end of a broken connection has released the lock.
            with suppress(DatabaseError):
                query("SELECT pg_advisory_unlock(%s, hashtext(%s))", key)

    return sole


def now() -> datetime:
    """Return the time of PostgreSQL's clock, which all times of runs and ids come from."""
    return query("SELECT clock_timestamp() AS at")[0]["at"]
