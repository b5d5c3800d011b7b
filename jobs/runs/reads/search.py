"""Searches of lists: only those that an index answers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Collate, Upper
from django.utils.translation import gettext_lazy as _

from jobs.models import Target
from jobs.models.access import access_of
from jobs.models.run import RunQuerySet

HELP: Final = _(
    "A run's id, a submission's number, a target's whole name, or a label as name:value."
)
_NUMBER_LIMIT: Final = 2**63
MOST_FOUND: Final = 500


def search_runs(runs: RunQuerySet, term: str, *, user: Any) -> RunQuerySet:
    """Return the runs that match a search term: all if it is empty."""
    term = term.strip()
    if not term:
        return runs
    with suppress(ValueError):
        return runs.filter(id=UUID(term))
    names = access_of(user).narrowed(Target.objects.all()).filter(name=term)
    wanted = Q(target_id__in=list(names.values_list("id", flat=True)[:100]))
    if term.isascii() and term.isdigit() and int(term) < _NUMBER_LIMIT:
        wanted |= Q(submission_id=int(term))
    label, colon, value = term.partition(":")
    if colon and label:
        # The second condition is that of the partial index; PostgreSQL cannot derive it.
        wanted |= Q(labels__contains={label.strip(): value.strip()}) & ~Q(labels={})
    return runs.filter(wanted)


def search_beginnings(
    rows: QuerySet[Any], term: str, *, exact: str, any_case: str = ""
) -> QuerySet[Any]:
    """Return the rows with a column that begins with a term, at most MOST_FOUND for each column.

    `exact` names a case-sensitive column, `any_case` a case-insensitive one. Ordered as the indexes
    are (collation "C"): however many rows match, no more are read than are shown.
    """
    term = term.strip().replace("\x00", "")
    if not term:
        return rows
    keys = set(first_with(rows, term, column=exact, most=MOST_FOUND))
    if any_case:
        keys |= set(first_with(rows, term, column=any_case, is_any_case=True, most=MOST_FOUND))
    return rows.filter(pk__in=keys)


def first_with(
    rows: QuerySet[Any], term: str, *, column: str, is_any_case: bool = False, most: int
) -> list[Any]:
    """Return the keys of the first rows with a column that begins with a term, equal ones first.

    A column that is searched in any case has an index without its empty texts.
    """
    order = Collate(Upper(column) if is_any_case else column, "C")
    found = rows.filter(**{f"{column}__{'i' if is_any_case else ''}startswith": term})
    if is_any_case:
        found = found.exclude(**{column: ""})
    return list(found.order_by(order).values_list("pk", flat=True)[:most])
