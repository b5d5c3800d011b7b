"""Counts for lists of millions of rows: estimated or capped, never a full scan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Self, TypeVar

from django.core.paginator import Paginator
from django.db import OperationalError, connection, models, transaction

from jobs.core import sql
from jobs.core.phrases import phrase

T = TypeVar("T")

CAP: Final = 10_000
"""Counts are exact up to here, and pages end here."""
COUNT_MILLISECONDS: Final = 250


class RoundCount(int):
    """An inexact number of rows, with its text: a phrase for readers of other languages."""

    words: str

    def __new__(cls, number: int, words: str) -> Self:
        count = super().__new__(cls, number)
        count.words = words
        return count

    def __str__(self) -> str:
        return self.words


class EstimatingPaginator(Paginator):
    """Pages through the newest CAP rows; older ones are found by filters."""

    @cached_property
    def count(self) -> int:
        """The number of rows: exact up to CAP, else an estimate or "more than"."""
        rows: Any = self.object_list
        if not rows.query.where:
            estimate = estimated_count(rows.model)
            if estimate > CAP:
                return RoundCount(estimate, phrase("about %(count)s", count=estimate))
        return capped_count(rows)

    @cached_property
    def num_pages(self) -> int:
        """Pages up to CAP rows: a deeper offset would read all rows before it."""
        return min(super().num_pages, max(1, CAP // self.per_page))


def capped_count(rows: models.QuerySet[Any]) -> int:
    """Count rows up to CAP; "many" after COUNT_MILLISECONDS."""
    some = rows.order_by().values("pk")[: CAP + 1]
    found = within(COUNT_MILLISECONDS, some.count)
    if found is None:
        return RoundCount(CAP + 1, phrase("many"))
    return found if found <= CAP else RoundCount(found, phrase("more than %(count)s", count=CAP))


def estimated_count(model: type[models.Model]) -> int:
    """Return PostgreSQL's estimate of the rows in a table and its partitions."""
    [row] = sql.query(
        "SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint AS rows FROM pg_class c "
        "WHERE c.relkind = 'r' AND (c.oid = %(table)s::regclass "
        "OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = %(table)s::regclass))",
        {"table": model._meta.db_table},
    )
    return int(row["rows"])


def within(milliseconds: int, ask: Callable[[], T]) -> T | None:
    """Return the result of a query, or None when it takes longer."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        before = cursor.fetchone()[0]
        try:
            with transaction.atomic():
                cursor.execute(f"SET LOCAL statement_timeout = {milliseconds:d}")
                answer = ask()
                # Releasing a savepoint would keep the setting. A rollback restores it, also if this
                # statement is late.
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [before])
        except OperationalError as error:
            if "statement timeout" not in str(error):
                raise
            return None
        return answer
