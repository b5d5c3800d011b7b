"""All rows that are stored: compared, and marked with the word for which the tests look."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.db import models, transaction

from jobs.core import barrier, prepared, sql
from jobs.models import Attempt, AuditEntry, Job, Owner, Run, Target, WindowDecision
from tests.jobs.pages.matrix.places import WORD

UNCHANGEABLE: Final = frozenset({AuditEntry, WindowDecision})
"""Triggers refuse changes of these; the word is in their reasons."""
NOTED: Final = frozenset({"last_used_at"})
"""Changed by whoever asks, though it is refused."""
FORMAL: Final = frozenset({"task", "queue", "slug", "key", "rule", "cron", "lock_key", "hostname"})
"""Texts that must keep their form; tasks and queues belong to no owner."""
SHORTEST: Final = 100
"""Shorter texts are words of ours, or have a form."""


def stored(owner: Owner | None = None) -> Any:
    """Return all rows as text, or those of one owner, by table: without uses of tokens."""
    barrier.lower()
    # PostgreSQL would begin parallel workers, which take longer than all of it.
    sql.query("SET LOCAL max_parallel_workers_per_gather = 0")
    rows = prepared.query(*_all_rows(owner))
    return {row["name"]: row["rows"] for row in rows}


@cache
def _all_rows(owner: Owner | None) -> tuple[str, list[Any]]:
    """Return one statement over all tables: one for each would take most of a test's time."""
    parts, parameters = [], []
    for model in owned() if owner else models_of_jobs():
        fields = model._meta.concrete_fields
        names = [field.attname for field in fields if field.name not in NOTED]
        query, given = rows_in(model, owner).values_list(*names).query.sql_with_params()
        parts.append(
            f"SELECT '{model.__name__}' AS name, array_agg(one::text ORDER BY one::text) AS rows "
            f"FROM ({query}) AS one"
        )
        parameters += given
    return " UNION ALL ".join(parts), parameters


PATHS: Final = {
    "Owner": "pk",
    "Window": "calendar__owner",
    "WindowDecision": "window__calendar__owner",
    "Attachment": "calendar__owner",
    "Missed": "job__owner",
    "Backfill": "job__owner",
}
"""The path from a row to its owner, where it is not `owner`."""


def owned() -> Iterator[type[models.Model]]:
    """Return the models whose rows belong to owners."""
    yield from (model for model in models_of_jobs() if model is Attempt or path_of(model))


def models_of_jobs() -> Iterator[type[models.Model]]:
    yield from apps.get_app_config("jobs").get_models()


def path_of(model: type[models.Model]) -> str:
    """Return the path from a row to its owner; empty if it has none."""
    names = {field.name for field in model._meta.concrete_fields}
    return PATHS.get(model.__name__, "owner" if "owner" in names else "")


def rows_in(model: Any, owner: Owner | None) -> Any:
    """Return the rows of a model, or those of one owner."""
    rows = model._base_manager.all()
    if owner is None:
        return rows
    if model is Attempt:
        return rows.filter(run_id__in=Run.objects.filter(owner=owner).values("id"))
    return rows.filter(**{path_of(model): owner.pk})


@contextmanager
def without_rows(owner: Owner) -> Iterator[None]:
    """Let an owner and all its rows be away in the block."""
    with transaction.atomic():
        # No triggers: neither foreign keys nor rules that forbid it.
        sql.query("SET LOCAL session_replication_role = replica")
        # First what is found by way of other rows, last the owner.
        for model in sorted(
            owned(), key=lambda each: (each is Owner, not _is_found_by_others(each))
        ):
            rows = rows_in(model, owner)
            rows._raw_delete(rows.db)
        yield
        transaction.set_rollback(True)


def _is_found_by_others(model: type[models.Model]) -> bool:
    return model is Attempt or "__" in path_of(model)


def marked_fields(model: type[models.Model]) -> Iterator[Any]:
    """Return the fields of a model that hold free text."""
    for field in model._meta.concrete_fields:
        is_text = isinstance(field, models.CharField | models.TextField) and not field.choices
        is_long = (field.max_length or SHORTEST) >= SHORTEST
        if is_text and is_long and field.name not in FORMAL and not field.primary_key:
            yield field


def mark(model: Any, owner: Owner) -> None:
    """Let each free text of an owner's rows contain the word, and the arguments of its runs."""
    if model in UNCHANGEABLE:
        return
    for row in rows_in(model, owner):
        texts = {
            field.name: f"{WORD} {row.pk}"[: field.max_length]
            for field in marked_fields(model)
            if WORD not in getattr(row, field.name)
        }
        if model is Run:
            texts |= {"payload": f'[[], {{"x": "{WORD}"}}, {{}}]'.encode(), "result": WORD.encode()}
        if model in (Job, Target):
            texts["labels"] = {"whose": WORD}
        if texts:
            model._base_manager.filter(pk=row.pk).update(**texts)


def texts_of(model: Any, owner: Owner) -> list[tuple[str, str]]:
    """Return the free texts of an owner's rows, each with the name of its field."""
    names = [field.name for field in marked_fields(model)]
    return [(name, getattr(row, name)) for row in rows_in(model, owner) for name in names]
