"""What is about to be removed: written to the archive or only counted, a part for each day."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Max
from django.db.models.functions import Now

from jobs.core import sql
from jobs.core.conf import setting
from jobs.models import HistoryPart
from jobs.system.retention import archive
from jobs.system.retention.spans import limits_of

FETCHED: Final = 2_000
"""Rows that PostgreSQL sends at a time."""
_COUNT: Final = "SELECT count(*) AS count FROM {table} WHERE id >= %(low)s AND id < %(high)s"


@dataclass(frozen=True, slots=True)
class Leaving:
    """Runs of one day that leave: in a table, those that are not in another one, or have an id."""

    day: datetime
    source: str
    aside: str | None = None
    """The table with a copy of those that stay."""
    ids: tuple[UUID, ...] | None = None

    @property
    def condition(self) -> str:
        """The condition of a row `r`, for `parameters`."""
        if self.aside is None:
            return "r.id = ANY(%(ids)s)"
        return f"NOT EXISTS (SELECT FROM {self.aside} s WHERE s.id = r.id)"

    @property
    def parameters(self) -> dict[str, Any]:
        low, high = limits_of(self.day)
        return {"low": low, "high": high, "ids": list(self.ids or ())}


def archive_folder() -> Path | None:
    """Return the folder of the archive; None if there is none."""
    folder = setting("ARCHIVE_FOLDER")
    return Path(folder) if str(folder) else None


def parts_of(leaving: Sequence[Leaving]) -> list[HistoryPart]:
    """Archive what leaves, if there is an archive; return the parts, which are not saved.

    Raises ArchiveError; nothing may be removed then.
    """
    folder = archive_folder()
    if folder is not None:
        archive.remove_incomplete(folder)
    made = (_archived(each, folder) if folder else _counted(each) for each in leaving)
    return [part for part in made if part is not None]


def save(parts: Sequence[HistoryPart]) -> None:
    """Save parts in the transaction that removes their rows."""
    for part in parts:
        if not part.number:
            part.number = _next_number(part.day)
        part.removed_at = Now()
        part.save(force_insert=True)


def _archived(leaving: Leaving, folder: Path) -> HistoryPart | None:
    day = leaving.day.date()
    # Closed before the transaction ends: collected later, the cursor would wait for the lock that
    # the same thread has on the connection.
    with transaction.atomic(), closing(_lines(leaving)) as lines:
        written = archive.write(folder, day, number=_next_number(day), lines=lines)
    if written is None:
        return None
    return HistoryPart(
        day=day,
        number=written.number,
        run_count=written.run_count,
        attempt_count=written.attempt_count,
        file=written.name,
        size_bytes=written.size_bytes,
        sha256=written.sha256,
    )


def _counted(leaving: Leaving) -> HistoryPart | None:
    """Return a part without a file. Two counts read only indexes, where a join would read rows."""
    if leaving.aside is None:
        count = len(leaving.ids or ())
    else:
        count = _count(leaving.source, leaving) - _count(leaving.aside, leaving)
    if not count:
        return None
    return HistoryPart(day=leaving.day.date(), number=0, run_count=count)


def _count(table: str, leaving: Leaving) -> int:
    [row] = sql.query(_COUNT.format(table=table), leaving.parameters)
    return int(row["count"])


def _next_number(day: date) -> int:
    known = HistoryPart.objects.filter(day=day).aggregate(last=Max("number"))["last"]
    return (known or 0) + 1


def _lines(leaving: Leaving) -> Generator[archive.Line, None, None]:
    text = sql.statement("system/history_rows")
    text = text.replace("{source}", leaving.source).replace("{condition}", leaving.condition)
    raw: Any = connection.connection
    # A server-side cursor: a day may have millions of rows.
    with raw.cursor(name="history") as cursor:
        cursor.itersize = FETCHED
        cursor.execute(text, leaving.parameters)
        for run, owner, attempts, logs, count in cursor:
            yield archive.Line(run, attempts, count, owner, logs)
