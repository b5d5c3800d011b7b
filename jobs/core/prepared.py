"""Statements about some runs, planned once: on the partition of the day that they are of.

A statement over all partitions is planned anew each time, which costs a worker's I/O thread more
than it takes to move fifty runs. The runs of a batch are nearly always of one day: on its partition
alone a plan holds for every batch. Runs of several days, or of one without a
partition, go the long way.

In their files `{runs}` stands for the table or its partition, and `{is_one_day}` for true or false.
See docs/planner.md.

A plan that was made while its partition was small may read the whole of it, and PostgreSQL makes
another only after its next look at the table. What took long is planned anew, for the size of now.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

import psycopg
from django.db import ProgrammingError, connection

from jobs.core import sql as database
from jobs.core.ids import time_of

_ONLY_WHEN_ASKED: Final = 2**31
SLOW_SECONDS: Final = 0.05
"""A statement that took longer is planned anew the next time, for a millisecond or two."""
_known: set[str] = set()


def run(
    name: str, ids: Collection[UUID], parameters: Mapping[str, Any], *, waits: bool = False
) -> list[dict[str, Any]]:
    """Run a statement file about the runs of these ids; return its rows by column name.

    `waits`: it may wait for others, so that the time that it takes says nothing of its plan.
    """
    partition = _partition(ids)
    if partition is None:
        return database.query(_statement(name), parameters)
    try:
        return _run(_statement(name, partition), parameters, waits=waits)
    except ProgrammingError:
        # Retention has dropped it, perhaps: whoever repeats this looks first.
        _known.discard(partition)
        raise


def run_over_all(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a statement file over all partitions, with a plan that a worker's I/O thread keeps.

    Such a plan looks into each of them, in a small part of the time that planning takes.
    """
    return _run(database.statement(name), parameters, waits=True)


def _run(sql: str, parameters: Mapping[str, Any], *, waits: bool) -> list[dict[str, Any]]:
    connection.ensure_connection()
    with connection.wrap_database_errors:
        raw: Any = connection.connection
        # None, as Django has it, is never, even where it is asked for.
        raw.prepare_threshold = _ONLY_WHEN_ASKED
        # Not Django's cursor: that writes the values into the text, which is another one each time.
        with psycopg.Cursor(raw) as cursor:
            began_at = time.monotonic()
            cursor.execute(sql, parameters, prepare=True)
            is_slow = time.monotonic() - began_at > SLOW_SECONDS
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            if is_slow and not waits:
                cursor.execute("DISCARD PLANS")
            return rows


def _partition(ids: Collection[UUID]) -> str | None:
    """Return the partition that holds all of these runs; None when there is no such one."""
    if not ids:
        return None
    try:
        first, last = time_of(min(ids)), time_of(max(ids))
    except OverflowError:
        return None  # ids come from the broker too, where anybody may have made one up
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
    """Return the name that the partition of runs of that day has, when there is one."""
    return f"jobs_run_{moment.astimezone(UTC):%Y%m%d}"
