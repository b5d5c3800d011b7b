"""Lists: filters that name their wrong field, and pages by cursor.

The filter of a list is in its address. A wrong filter is shown at its field, and finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from jobs.core import cursors
from jobs.pages.kit.errors import PageError
from jobs.pages.kit.visit import Visit

LIMIT: Final = 50
CURSOR: Final = "after"
"""The parameter of an address with the cursor."""

Found = TypeVar("Found", bound=Model)


class FilterForm(forms.Form):
    """The filter of a list: all its fields are optional, and its data is the address."""

    use_required_attribute = False

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit.request.GET, auto_id="filter_%s", label_suffix="")
        for field in self.fields.values():
            field.required = False

    @property
    def is_set(self) -> bool:
        """Whether a field of the filter has a value."""
        return any(self.data.get(name) for name in self.fields)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Found]):
    """One page of a list, for the template `jobs/pages/parts/pager.html`."""

    rows: list[Found]
    next: str | None
    """The address of the next page; None: this is the last."""
    first: str | None
    """The address of the first page; None: this is the first."""


def newest_first(
    visit: Visit, rows: QuerySet[Found], *, of: str, read_key: Callable[[str], Any] = int
) -> ListPage[Found]:
    """Return the page of a list that the address names, the highest key first.

    `of` is the list's name; `read_key` reads a primary key from its text (`UUID` for runs).
    """
    query = visit.request.GET.copy()
    cursor = query.pop(CURSOR, [""])[-1]
    mark = cursors.mark_of(f"page:{of}", visit.access.actor, sorted(query.lists()))
    if cursor:
        rows = rows.filter(pk__lt=read_key(read(cursor, mark)))
    found = list(rows.order_by("-pk")[: LIMIT + 1])
    more = len(found) > LIMIT
    return ListPage(
        found[:LIMIT],
        _address(visit, query, cursors.write(mark, found[LIMIT - 1].pk)) if more else None,
        _address(visit, query, None) if cursor else None,
    )


def read(cursor: str, mark: str) -> str:
    """Return the key in a cursor of this list; raise the answer 400 for any other text."""
    try:
        return cursors.read(cursor, mark)
    except cursors.WrongCursor:
        text = _("after: is not the address of a next page of this list")
        raise PageError(HTTPStatus.BAD_REQUEST, text) from None


def _address(visit: Visit, query: QueryDict, cursor: str | None) -> str:
    shown = query.copy()
    if cursor is not None:
        shown[CURSOR] = cursor
    return f"{visit.request.path}?{shown.urlencode()}"
