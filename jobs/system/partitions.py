"""Day partitions of runs, attempts and logs, made ahead; other rows go to the default partition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import DatabaseError, connection, transaction

from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.ids import first_id_of
from jobs.core.locks import LockClass

TABLES: Final = (("jobs_run", "id"), ("jobs_attempt", "run_id"), ("jobs_log", "run_id"))
LOCK_TIMEOUT: Final = "5s"
ALARM_DAYS: Final = 7


def make_partitions(*, days_ahead: int | None = None) -> list[str]:
    """Make every missing partition from yesterday to `days_ahead`; return their names."""
    days = setting("PARTITION_DAYS_AHEAD") if days_ahead is None else days_ahead
    today = sql.query("SELECT clock_timestamp() AS at")[0]["at"].astimezone(UTC)
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    made: list[str] = []
    problem: DatabaseError | None = None
    for offset in range(-1, days + 1):
        try:
            made += make_day(midnight + timedelta(days=offset))
        except DatabaseError as error:
            # A row that cannot be moved, or is locked, must not keep the later days from theirs.
            problem = problem or error
    if problem is not None:
        raise problem
    return made


def make_day(midnight: datetime) -> list[str]:
    """Make the partitions of one day that are missing; return their names."""
    with transaction.atomic():
        sql.query("SELECT pg_advisory_xact_lock(%s, 0)", [LockClass.PARTITIONS])
        return [
            _make(table, column, day=midnight)
            for table, column in TABLES
            if not _exists(table, midnight)
        ]


def days_left() -> int:
    """Return how many whole days after today have a partition for runs; -1 if not even today."""
    rows = sql.query(
        "SELECT max(substring(relname FROM '[0-9]{8}$')) AS day FROM pg_class "
        "WHERE relkind = 'r' AND relname ~ '^jobs_run_[0-9]{8}$'"
    )
    if rows[0]["day"] is None:
        return -1
    last = datetime.strptime(rows[0]["day"], "%Y%m%d").replace(tzinfo=UTC)
    return (last.date() - datetime.now(UTC).date()).days


def _name(table: str, day: datetime) -> str:
    return f"{table}_{day:%Y%m%d}"


def _exists(table: str, day: datetime) -> bool:
    return bool(sql.query("SELECT to_regclass(%s) AS it", [_name(table, day)])[0]["it"])


def _make(table: str, column: str, *, day: datetime) -> str:
    """Create a partition, fill it from the default one, attach it: inserts need not wait."""
    name = _name(table, day)
    low, high = first_id_of(day), first_id_of(day + timedelta(days=1))
    with connection.cursor() as cursor:
        # PostgreSQL takes no names as parameters; these are made from constants and dates.
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM {table}_default "  # noqa: S608
            f"WHERE {column} >= %s AND {column} < %s)",
            [low, high],
        )
        if cursor.fetchone()[0]:
            # Without the lock, an outcome that waits for a row would not find it after its move.
            # Lock the whole table, not only its default partition: PostgreSQL then plans the
            # statements that wait with the new partition.
            cursor.execute(f"LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(
            f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
        )
        if table == "jobs_run":
            # Before the primary key, which attaching makes: without statistics, PostgreSQL uses
            # the newer of two indexes for a look-up by id.
            cursor.execute(f"CREATE INDEX ON {name} (owner_id, id)")
        cursor.execute(
            f"WITH moved AS (DELETE FROM {table}_default "  # noqa: S608
            f"WHERE {column} >= %s AND {column} < %s RETURNING *) "
            f"INSERT INTO {name} SELECT * FROM moved",
            [low, high],
        )
        cursor.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ('{low}') TO ('{high}')"
        )
    return name
