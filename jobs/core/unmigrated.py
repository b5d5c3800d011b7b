"""A table or column that a model has and the database lacks: the error says what to run.

PostgreSQL's own text names a relation, and neither the cause nor the cure. Every query of Django's
passes here: those of the admin, of `submit`, of beat and of commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.db import ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

UNDEFINED: Final = {"42P01", "42703"}
"""PostgreSQL's codes for a table and for a column that do not exist."""


class Unmigrated(ProgrammingError):
    """Migrations are missing in the database; Django's own error is the cause."""


def explain_missing_tables() -> None:
    """Have each connection of this process raise Unmigrated where migrations are missing."""
    connection_created.connect(_add_wrapper, dispatch_uid="fairshift unmigrated")


def _add_wrapper(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    # The same object connects again after its connection was lost.
    if _explained not in connection.execute_wrappers:
        connection.execute_wrappers.append(_explained)


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
    """Return the table or column that an installed model has and PostgreSQL does not find."""
    if getattr(error, "sqlstate", None) not in UNDEFINED:
        return None
    # By its names alone: the words between them are in the server's language.
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
