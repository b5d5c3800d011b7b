"""Replace old partitions by one with the rows that stay, or by none.

1. A trigger notes each row of the partitions that is written from now on.
2. The rows that stay are copied into a new table, with its indexes.
3. What leaves is archived: the rows that are not in the new table.
4. In one short transaction that has the locks, rows that were noted are copied again, whatever they
   are now; the partitions are detached, and the new table is attached under the first one's name.
5. The old tables are dropped, when no statement can find them any more.

Until 4 commits, nothing has changed for any reader; after it, all rows that stay are there. A
process may end between any two steps: the next round begins anew, and drops what was left. Only 1
and 4 wait for locks, LOCK_TIMEOUT at most, so no other statement waits behind them for longer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db import OperationalError, transaction
from psycopg.errors import DeadlockDetected, LockNotAvailable

from fleet import crash_point
from jobs.core import sql
from jobs.core.ids import time_of
from jobs.core.locks import LockClass
from jobs.models import HistoryPart
from jobs.system.retention import parts as removed_parts
from jobs.system.retention.rules import Rules
from jobs.system.retention.spans import RUNS, Partition, Table

logger = logging.getLogger(__name__)

LOCK_TIMEOUT: Final = "40ms"
TRIES: Final = 25
PAUSE_SECONDS: Final = 0.2
MOST_TOUCHED: Final = 500
"""Rows that are copied again while the locks are held; with more, a later round tries again."""
_GONE: Final = "_gone"
_LEFT: Final = """
SELECT c.oid::regclass::text AS name FROM pg_class c
WHERE c.relkind = 'r' AND NOT c.relispartition AND pg_table_is_visible(c.oid)
    AND c.relname ~ '^jobs_(run|attempt|log)_([0-9]{8}_gone|aside)$'
"""
_COLUMNS: Final = """
SELECT attname AS name FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_FORGET: Final = "DELETE FROM {aside} WHERE {column} = ANY(%(touched)s)"
_COPY_AGAIN: Final = """
INSERT INTO {aside} ({columns}) SELECT {values} FROM {source} r WHERE r.{column} = ANY(%(touched)s)
"""
_TAKE_IN: Final = """
WITH moved AS (
    DELETE FROM {table}_default r WHERE r.{column} >= %(low)s AND r.{column} < %(high)s RETURNING *)
INSERT INTO {aside} ({columns}) SELECT {values} FROM moved r
"""
_ANY: Final = "SELECT EXISTS (SELECT FROM {name}) AS it"
_COPY: Final = {
    "jobs_run": "system/history_copy_runs",
    "jobs_attempt": "system/history_copy_attempts",
    "jobs_log": "system/history_copy_logs",
}


class Busy(Exception):
    """A partition is in use and cannot be replaced now; the message names it."""


def replace(table: Table, sources: Sequence[Partition], *, rules: Rules) -> list[HistoryPart]:
    """Replace neighbouring partitions, the oldest first; return the parts that were removed.

    Raises Busy or ArchiveError; nothing has been removed then. Not safe for two processes at once.
    """
    drop_left()
    _watch(table, sources)
    _copy(table, sources, rules)
    crash_point("retention.after_copy")
    parts = _parts(table, sources) if table is RUNS else []
    crash_point("retention.after_archive")
    _patiently(sources[0].name, lambda: _swap(table, sources, parts))
    crash_point("retention.after_swap")
    drop_left()
    return parts


def drop_left() -> None:
    """Drop the tables that were replaced, and copies that were not completed."""
    for row in sql.query(_LEFT):
        sql.query(f"DROP TABLE {row['name']}")


def _watch(table: Table, sources: Sequence[Partition]) -> None:
    def act() -> None:
        sql.query("DELETE FROM jobs_touched")
        for source in sources:
            sql.query(
                "CREATE OR REPLACE TRIGGER history_touched AFTER INSERT OR UPDATE OR DELETE ON "
                f"{source.name} FOR EACH ROW EXECUTE FUNCTION jobs_note_touched('{table.column}')"
            )

    _patiently(sources[0].name, act)


def _copy(table: Table, sources: Sequence[Partition], rules: Rules) -> None:
    """Fill the new table. Its check lets PostgreSQL attach it without reading it."""
    low, high = sources[0].low, sources[-1].high
    with transaction.atomic():
        # Like a partition, whose indexes are in the order that `partitions` gives them.
        sql.query(
            f"CREATE TABLE {table.aside} (LIKE {sources[-1].name} INCLUDING DEFAULTS "
            "INCLUDING CONSTRAINTS INCLUDING INDEXES, CONSTRAINT history_span "
            f"CHECK ({table.column} >= '{low}' AND {table.column} < '{high}'))"
        )
        for source in sources:
            text = sql.statement(_COPY[table.name]).replace("{source}", source.name)
            sql.query(
                _with_columns(table, text),
                {**rules.parameters, "low": source.low, "high": source.high},
            )
    sql.query(f"ANALYZE {table.aside}")


def _parts(table: Table, sources: Sequence[Partition]) -> list[HistoryPart]:
    return removed_parts.parts_of(
        [
            removed_parts.Leaving(day, source.name, aside=table.aside)
            for source in sources
            for day in source.days
        ]
    )


def _swap(table: Table, sources: Sequence[Partition], parts: Sequence[HistoryPart]) -> None:
    sql.query("SELECT pg_advisory_xact_lock(%s, 0)", [LockClass.PARTITIONS])
    # Both: a worker's statements name the partition, and do not lock the table.
    sql.query(f"LOCK TABLE ONLY {table.name} IN ACCESS EXCLUSIVE MODE")
    sql.query(f"LOCK TABLE {', '.join(source.name for source in sources)} IN ACCESS EXCLUSIVE MODE")
    _copy_touched(table, sources)
    for source in sources:
        sql.query(f"ALTER TABLE {table.name} DETACH PARTITION {source.name}")
        sql.query(f"DROP TRIGGER history_touched ON {source.name}")
        sql.query(f"ALTER TABLE {source.name} RENAME TO {source.name}{_GONE}")
    if _any(table.aside):
        low, high = sources[0].low, sources[-1].high
        name = f"{table.name}_{time_of(low):%Y%m%d}"
        sql.query(f"ALTER TABLE {table.aside} RENAME TO {name}")
        sql.query(
            f"ALTER TABLE {table.name} ATTACH PARTITION {name} "
            f"FOR VALUES FROM ('{low}') TO ('{high}')"
        )
        sql.query(f"ALTER TABLE {name} DROP CONSTRAINT history_span")
    removed_parts.save(parts)


def _copy_touched(table: Table, sources: Sequence[Partition]) -> None:
    """Copy rows again that were written since the copy; take those of the default partition in."""
    touched = [row["run_id"] for row in sql.query("SELECT DISTINCT run_id FROM jobs_touched")]
    if len(touched) > MOST_TOUCHED:
        raise Busy(f"{sources[0].name}: {len(touched)} of its runs have just been written")
    if touched:
        sql.query(_with_columns(table, _FORGET), {"touched": touched})
        for source in sources:
            text = _COPY_AGAIN.replace("{source}", source.name)
            sql.query(_with_columns(table, text), {"touched": touched})
    span = {"low": sources[0].low, "high": sources[-1].high}
    sql.query(_with_columns(table, _TAKE_IN), span)


def _any(name: str) -> bool:
    return bool(sql.query(_ANY.format(name=name))[0]["it"])


def _with_columns(table: Table, text: str) -> str:
    names = [row["name"] for row in sql.query(_COLUMNS, [table.name])]
    return (
        text.replace("{table}", table.name)
        .replace("{column}", table.column)
        .replace("{aside}", table.aside)
        .replace("{columns}", ", ".join(names))
        .replace("{values}", ", ".join(f"r.{name}" for name in names))
    )


def _patiently(name: str, act: Callable[[], Any]) -> None:
    """Act in a transaction that waits for each lock at most LOCK_TIMEOUT; try again if it fails."""
    for attempt in range(TRIES):
        try:
            with transaction.atomic():
                sql.query(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                act()
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable | DeadlockDetected):
                raise
            # The others must come to an end meanwhile: they have waited behind this one.
            time.sleep(PAUSE_SECONDS * min(5, attempt + 1))
    raise Busy(f"{name} is in use by a transaction that does not end")
