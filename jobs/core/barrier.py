"""The barrier: row-level security in PostgreSQL, below the filters of `jobs/models/access.py`.

While it is raised, the connection acts as a role for which rows of other owners do not exist, and
which can only read. Requests raise it for their owners and lower it at their end. Rows are found
behind the barrier; a verb acts on them with the barrier lifted. Nothing else ever raises it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from django.db import connection
from psycopg import Error

from jobs.core import sql

ROLE: Final = "fairshift_tenant"
"""The role that migration 0007 creates. It cannot log in; it is the same in all databases."""

_RAISE: Final = "SELECT set_config('fairshift.owner_ids', %s, false), set_config('role', %s, false)"
_LOWER: Final = (
    "SELECT set_config('role', 'none', false), set_config('fairshift.owner_ids', '', false)"
)
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
    is_up: bool = False
    """Whether the connection has the role now."""
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
    owners = sql.array(owner_ids)
    if role():
        sql.query(_RAISE, [owners, ROLE])
        note_raised(owners)


def note_raised(owners: str) -> None:
    """Note that a statement of the caller has raised the barrier, for this array of ids."""
    _state.owners, _state.is_up = owners, True
    sql.wrap_first(connection, _keep_up)


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
    lower()
    if owners is not None:
        note_raised(owners)
        _state.is_up = False
    try:
        yield
    finally:
        lower()


@contextmanager
def lifted() -> Iterator[None]:
    """Act as the system on rows that were found behind the barrier.

    The next statement after the block raises the barrier again. Begin a transaction inside the
    block, not around it: its rollback would raise the barrier, and `lower` would not know it.
    """
    if not is_raised():
        yield
        return
    _state.is_lifted = True
    try:
        if _state.is_up:
            # Past Django's cursor, which takes longer than the statement.
            with connection.wrap_database_errors:
                connection.connection.execute(_LOWER)
            _state.is_up = False
        yield
    finally:
        _state.is_lifted = False


def lower() -> None:
    """End the barrier of a request; a connection that cannot is closed. Repeating is harmless."""
    is_up, _state.owners, _state.is_up = _state.is_up, None, False
    if not is_up or connection.connection is None:
        return
    try:
        # Past Django's cursor, which refuses every statement of a broken transaction.
        connection.connection.execute(_LOWER)
    except Error:
        # The rollback of a transaction takes back the role that was set in it.
        if not connection.in_atomic_block:
            connection.close()


def _keep_up(
    execute: Callable[..., Any], statement: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Raise the barrier again before the first statement after a verb."""
    if is_raised() and not _state.is_up:
        context["connection"].connection.execute(_RAISE, [_state.owners, ROLE])
        _state.is_up = True
    return execute(statement, params, many, context)
