"""Prepared statements about runs, planned once for the partition of their day.

Planning over all partitions takes longer than moving fifty runs. The runs of a batch are nearly
always of one day, and a plan for that day's partition serves every batch. Runs of several days, or
of a day without a partition, are planned over all.

In the SQL files, `{runs}` stands for the table or its partition, `{is_one_day}` for true or false.
See docs/understand/planner.md.

A plan that was made for a small table may read all of it, and PostgreSQL keeps it until the next
ANALYZE. Plans are discarded after a slow statement, and whenever the number of a connection's
statements has doubled: tables grow with these statements.

Behind the barrier, and behind a pooler that keeps no session, the same statements run unprepared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.db import ProgrammingError, connection

from jobs.core import barrier
from jobs.core import sql as database
from jobs.core.ids import time_of

_ONLY_WHEN_ASKED: Final = 2**31
SLOW_SECONDS: Final = 0.05
"""A statement that took longer is planned again, in 1–2 ms."""
FEWEST: Final = 16
"""Statements of a connection before its plans are discarded for the first time; a power of two."""
_PLACEHOLDER: Final = re.compile(r"%(?:\((\w+)\)s|s|%)")
_known: set[str] = set()
_counts: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()
"""The number of statements of each open connection."""
_names: Final[dict[str, list[str]]] = {}
"""The names of the columns of each statement."""


def run(
    name: str, ids: Collection[UUID], parameters: Mapping[str, Any], *, waits: bool = False
) -> list[dict[str, Any]]:
    """Run a statement file about these runs; with `waits`, a slow one is not planned again.

    It may be slow because it waits for locks.
    """
    # Behind the barrier only the table itself may be read: its policy hides others' rows.
    partition = None if barrier.is_raised() else _partition(ids)
    if partition is None:
        return database.query(_statement(name), parameters)
    try:
        return _run(_statement(name, partition), parameters, waits=waits)
    except ProgrammingError:
        # The partition may have been dropped: the next call looks again.
        _known.discard(partition)
        raise


def run_over_all(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a statement file over all partitions, with a plan that the connection keeps."""
    return _run(database.statement(name), parameters, waits=True)


def query(sql: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Run a text over all partitions, with a plan that the connection keeps.

    Planning takes 5 ms over 33 partitions, and the statement 0.2 ms: this is for texts that never
    change, run each second and wait for no lock. A slow one is planned again.
    """
    return _run(sql, parameters, waits=False)


def _run(
    sql: str, parameters: Mapping[str, Any] | Sequence[Any], *, waits: bool
) -> list[dict[str, Any]]:
    if barrier.is_raised() or not database.keeps_session(connection):
        return database.query(sql, parameters)
    connection.ensure_connection()
    execute = partial(_execute, waits=waits)
    # As Django's cursor does: wrappers count queries, and explain errors.
    for wrapper in reversed(connection.execute_wrappers):
        execute = partial(wrapper, execute)
    return execute(sql, parameters, False, {"connection": connection})


def _execute(
    sql: str,
    parameters: Mapping[str, Any] | Sequence[Any],
    _many: bool,
    _context: Any,
    *,
    waits: bool,
) -> list[dict[str, Any]]:
    with connection.wrap_database_errors:
        raw: Any = connection.connection
        # Django's None means never, even with prepare=True.
        raw.prepare_threshold = _ONLY_WHEN_ASKED
        text, order = _numbered(sql)
        values: Sequence[Any] = (
            [parameters[name] for name in order]
            if isinstance(parameters, Mapping)
            else list(parameters)
        )
        # Not Django's cursor, which writes the values into the text: it would differ each time.
        with psycopg.RawCursor(raw) as cursor:
            if _has_doubled(raw):
                cursor.execute("DISCARD PLANS")
            began_at = time.monotonic()
            cursor.execute(text, values, prepare=True)
            is_slow = time.monotonic() - began_at > SLOW_SECONDS
            names = _names.get(sql)
            if names is None:
                # Stored: psycopg makes an object of each column every time.
                names = _names[sql] = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            if is_slow and not waits:
                cursor.execute("DISCARD PLANS")
            return rows


@cache
def _numbered(sql: str) -> tuple[str, list[str]]:
    """Return a text with PostgreSQL's own placeholders, and the names of parameters in their order.

    psycopg would search texts of more than 4 kB for placeholders each time.
    """
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        name = found[1] or str(len(numbers))
        return f"${numbers.setdefault(name, len(numbers) + 1)}"

    text = _PLACEHOLDER.sub(number, sql)
    return text, list(numbers)


def _has_doubled(raw: Any) -> bool:
    """Count one more statement of a connection; say whether its plans are to be discarded."""
    count = _counts[raw] = _counts.get(raw, 0) + 1
    return count >= FEWEST and count.bit_count() == 1


def _partition(ids: Collection[UUID]) -> str | None:
    """Return the partition of all these runs; None if they have no common one."""
    if not ids:
        return None
    try:
        first, last = time_of(min(ids)), time_of(max(ids))
    except OverflowError:
        return None  # an id from the broker may be forged
    name = partition_of(first)
    if name != partition_of(last):
        return None
    if name not in _known and database.query("SELECT to_regclass(%s) AS it", [name])[0]["it"]:
        _known.add(name)
    return name if name in _known else None


@cache
def _statement(name: str, partition: str | None = None) -> str:
    text = database.statement(name).replace("{runs}", partition or "jobs_run")
    return text.replace("{is_one_day}", "true" if partition else "false")


def partition_of(moment: datetime) -> str:
    """Return the name of the partition of runs of that day."""
    return f"jobs_run_{moment.astimezone(UTC):%Y%m%d}"
