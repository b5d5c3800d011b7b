"""The day partitions of runs, attempts and logs that are old enough to lose rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from jobs.core import sql
from jobs.core.ids import first_id_of, time_of

DAY: Final = timedelta(days=1)
WIDEST: Final = timedelta(days=31)
"""The longest span of a partition that has taken in older ones."""
SMALL: Final = 20_000
"""Rows of a partition that is copied again at little cost."""

_BOUNDS: Final = re.compile(r"FROM \('([0-9a-f-]{36})'\) TO \('([0-9a-f-]{36})'\)")
# Not `_default`, whose bound is the word DEFAULT.
_PARTITIONS: Final = """
SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds, c.reltuples AS rows
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with day partitions, and the column with the id of the run."""

    name: str
    column: str

    @property
    def aside(self) -> str:
        """The name of the table into which rows that stay are copied."""
        return f"{self.name}_aside"


RUNS: Final = Table("jobs_run", "id")
ATTEMPTS: Final = Table("jobs_attempt", "run_id")
LOGS: Final = Table("jobs_log", "run_id")


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition with ids from `low` up to, not including, `high`."""

    name: str
    low: UUID
    high: UUID
    rows: float = -1
    """How many rows it has, as PostgreSQL estimates; negative: unknown."""

    @property
    def days(self) -> Iterator[datetime]:
        """The midnights with which its days begin."""
        moment, end = time_of(self.low), time_of(self.high)
        while moment < end:
            yield moment
            moment += DAY

    @property
    def is_small(self) -> bool:
        return 0 <= self.rows <= SMALL


def partitions(table: Table, *, before: UUID) -> list[Partition]:
    """Return the partitions whose ids are all below `before`, the oldest first."""
    found = []
    for row in sql.query(_PARTITIONS, [table.name]):
        if match := _BOUNDS.search(row["bounds"]):
            low, high = map(UUID, match.groups())
            found.append(Partition(row["name"], low, high, row["rows"]))
    return sorted((each for each in found if each.high <= before), key=lambda each: each.low)


def with_neighbour(partition: Partition, older: list[Partition]) -> list[Partition]:
    """Return the partition, and the one before it if that is small and both are within WIDEST.

    So a month of few rows that stay is one partition: each costs planning time.
    """
    if older and older[-1].is_small:
        span = time_of(partition.high) - time_of(older[-1].low)
        if span <= WIDEST:
            return [older[-1], partition]
    return [partition]


def limits_of(day: datetime) -> tuple[UUID, UUID]:
    """Return the first id of a day, and that of the next."""
    return first_id_of(day), first_id_of(day + DAY)
