"""The barrier: row-level security in PostgreSQL, below the filters of `jobs/models/access.py`.

While it is raised, statements run as a role for which rows of other owners do not exist, and which
can only read. Requests raise it for their owners and lower it at their end. Rows are found behind
the barrier; a verb acts on them with the barrier lifted. Nothing else ever raises it.

Each statement takes the role and gives it back in one message, so in one transaction. A session
never has it: a pooler may give each transaction another connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from django.db import connection
from psycopg import ClientCursor

from jobs.core import sql

ROLE: Final = "fairshift_tenant"
"""The role that `0005_barrier.sql` creates. It cannot log in; it is the same in all databases."""

# One message is one transaction, also in autocommit. In a transaction of the caller, what follows
# the statement must not have the role. After an error, the rollback takes it back.
_BEHIND: Final = (
    "SELECT set_config('fairshift.owner_ids', '{owners}', true),"
    f" set_config('role', '{ROLE}', true);\n"
    "{statement}\n;\n"
    "SELECT set_config('role', 'none', true), set_config('fairshift.owner_ids', '', true)"
)
_OF_SAVEPOINTS: Final = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
"""Beginnings of Django's statements that read nothing. A savepoint would keep the role."""
_MAY: Final = """
SELECT EXISTS (
    SELECT FROM pg_roles WHERE rolname = %(role)s
        AND pg_has_role(current_user, oid, %(privilege)s)
) AS may
"""


class _State(threading.local):
    """The barrier of this thread's connection."""

    owners: str | None = None
    """The owners' ids as an array's text; None: this request has no barrier."""
    is_lifted: bool = False
    """Whether a block of `lifted` is running."""


_state: Final = _State()


@cache
def role() -> str:
    """Return the role's name; empty without it, or if the database's user may not take it."""
    # PostgreSQL 15 has one privilege for membership and for SET ROLE.
    privilege = "SET" if connection.pg_version >= 160_000 else "MEMBER"  # type: ignore[attr-defined]
    [row] = sql.query(_MAY, {"role": ROLE, "privilege": privilege})
    return ROLE if row["may"] else ""


def raise_for(owner_ids: Collection[int]) -> None:
    """Hide the rows of all other owners from this connection, until `lower`."""
    if role():
        _state.owners = sql.array(owner_ids)
        sql.wrap_first(connection, _run_behind)


def is_raised() -> bool:
    """Say whether the next statement of this connection runs behind the barrier."""
    return _state.owners is not None and not _state.is_lifted


def owners_of_request() -> str | None:
    """Return the owners that this request sees, for `raised_again`; None without a barrier."""
    return _state.owners


@contextmanager
def raised_again(owners: str | None) -> Iterator[None]:
    """Raise the barrier of a request that has ended, for the statements of this block.

    An answer that is sent in parts is read after its request has lowered the barrier. The end of
    the block lowers it again. `owners` comes from `owners_of_request`; None: there is no barrier.
    """
    _state.owners = owners
    if owners is not None:
        sql.wrap_first(connection, _run_behind)
    try:
        yield
    finally:
        lower()


@contextmanager
def lifted() -> Iterator[None]:
    """Act as the system on rows that were found behind the barrier."""
    before, _state.is_lifted = _state.is_lifted, True
    try:
        yield
    finally:
        _state.is_lifted = before


def lower() -> None:
    """End the barrier of a request. Repeating is harmless."""
    _state.owners = None


def _run_behind(
    execute: Callable[..., Any], statement: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Run a statement as the role, if the barrier is raised."""
    if not is_raised() or statement.startswith(_OF_SAVEPOINTS):
        return execute(statement, params, many, context)
    cursor = context["cursor"]
    if params is not None and not isinstance(cursor.cursor, ClientCursor):
        # A message with parameters of their own, as by `server_side_binding`, has one statement.
        statement = context["connection"].ops.compose_sql(statement, params)
        params = None
    text = _BEHIND.replace("{owners}", _state.owners or "").replace("{statement}", statement)
    found = execute(text, params, many, context)
    cursor.nextset()  # past the result of the first
    return found
