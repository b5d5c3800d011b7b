"""Statements from files of their own, run on the caller's connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from django.db import connection

_FOLDER = Path(__file__).parent / "sql"


@cache
def statement(name: str) -> str:
    """Return the text of `jobs/sql/<name>.sql`."""
    return (_FOLDER / f"{name}.sql").read_text()


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
