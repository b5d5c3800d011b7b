"""Have Django's queries say `migrate` when the database lacks a table or column of a model."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.db import ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from jobs.core.sql import wrap_first

UNDEFINED: Final = {"42P01", "42703"}
"""PostgreSQL's error codes for a missing table and a missing column."""


class Unmigrated(ProgrammingError):
    """Migrations are missing in the database; Django's own error is the cause."""


def explain_missing_tables() -> None:
    """Make each connection of this process raise Unmigrated if migrations are missing."""
    connection_created.connect(_add_wrapper, dispatch_uid="fairshift unmigrated")


def _add_wrapper(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    # The same object connects again after a lost connection.
    wrap_first(connection, _explained)


def _explained(
    execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    try:
        return execute(sql, params, many, context)
    except ProgrammingError as error:
        missing = _missing_of_a_model(error.__cause__)
        if missing is None or isinstance(error, Unmigrated):
            raise
        name = context["connection"].settings_dict["NAME"]
        raise Unmigrated(
            f"Migrations are missing in database {name!r}, which has no {missing}:"
            " run `python manage.py migrate`."
        ) from error


def _missing_of_a_model(error: BaseException | None) -> str | None:
    """Return the table or column of an installed model that PostgreSQL lacks."""
    if getattr(error, "sqlstate", None) not in UNDEFINED:
        return None
    # By the names in it: its words are in the server's language.
    message = getattr(getattr(error, "diag", None), "message_primary", None) or ""
    names = set(re.findall(r"\w+", message))
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        if table not in names or not model._meta.managed:
            continue
        if error.sqlstate == "42P01":  # type: ignore[union-attr]
            return f"table {table}"
        column = next(
            (one.column for one in model._meta.concrete_fields if one.column in names), None
        )
        if column is not None:
            return f"column {table}.{column}"
    return None
