"""Lists: filters that name their wrong field, and pages by cursor.

The filter of a list is in its address. A wrong filter is shown at its field, and finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _
from pydantic import AwareDatetime, ValidationError
from pydantic.fields import FieldInfo

from jobs.actions import Shown
from jobs.actions.filters.declared import Choices, Filter, part_of
from jobs.core import cursors
from jobs.core.language import in_language
from jobs.pages.kit.body_form import kind_of
from jobs.pages.kit.errors import PageError
from jobs.pages.kit.visit import Visit

LIMIT: Final = 50
CURSOR: Final = "cursor"
"""The parameter of an address with the cursor."""

Found = TypeVar("Found", bound=Model)
Key = TypeVar("Key")


class MomentInput(forms.DateTimeInput):
    """The browser's input of a date and a time. It also shows moments with a zone."""

    input_type = "datetime-local"

    def format_value(self, value: Any) -> str | None:
        with suppress(ValueError, TypeError):
            found = parse_datetime(value)
            if found is not None and found.tzinfo is not None:
                value = timezone.localtime(found)
        return super().format_value(value)


class FilterForm(forms.Form):
    """The form of a list's filters, drawn from their declaration. Its data is the address."""

    use_required_attribute = False
    wanted: Any
    """The filter, with the chosen owner, once the form is valid."""

    def __init__(self, visit: Visit, filters: type[Filter], *, of_owner: bool = True) -> None:
        super().__init__(visit.request.GET, auto_id="filter_%s", label_suffix="")
        self.visit, self.filters = visit, filters
        has_owner = of_owner and visit.owner is not None and "owner" in filters.model_fields
        self.chosen = {"owner": visit.owner.slug} if has_owner and visit.owner else {}
        for name, info in filters.model_fields.items():
            if shown := part_of(info, Shown):
                self.fields[name] = _field(info, shown)

    @property
    def is_set(self) -> bool:
        """Whether a field of the filter has a value."""
        return any(self.data.get(name) for name in self.fields)

    @property
    def is_narrow(self) -> bool:
        """Whether there is a filter or a chosen owner: actions on all rows of a filter need one."""
        return self.is_set or self.visit.owner is not None

    @property
    def query(self) -> str:
        """The filter of a valid form as the query of an address, in one order."""
        return urlencode(self.wanted.query(), doseq=True)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        given: dict[str, Any] = {**self.chosen}
        for name, value in cleaned.items():
            if value not in (None, ""):
                text = value.isoformat() if isinstance(value, datetime) else value
                is_list = kind_of(self.filters.model_fields[name].annotation) is list
                given[name] = [text] if is_list else text
        try:
            self.wanted = self.filters(**given)
        except ValidationError as error:
            for fault in error.errors():
                self.add_error(str(fault["loc"][0]), fault["msg"].removeprefix("Value error, "))
        return cleaned

    def narrow(self, rows: Any) -> Any:
        """Narrow rows by the filter; a wrong one finds none."""
        return (
            self.wanted.narrow(rows, access=self.visit.access) if self.is_valid() else rows.none()
        )


def _field(info: FieldInfo, shown: Shown) -> forms.Field:
    given: dict[str, Any] = {"label": _(shown.label), "required": False}
    choices, kind = part_of(info, Choices), kind_of(info.annotation)
    if choices is not None and not choices.is_open:
        pairs = ((value, in_language(label)) for value, label in choices.pairs)
        return forms.ChoiceField(**given, choices=[("", _("any")), *pairs])
    if kind in (datetime, AwareDatetime):
        return forms.DateTimeField(**given, widget=MomentInput(format="%Y-%m-%dT%H:%M"))
    if kind is int:
        return forms.IntegerField(**given, widget=forms.NumberInput(attrs={"size": 8}))
    hint = {"placeholder": _(shown.help)} if shown.help else {}
    return forms.CharField(**given, widget=forms.TextInput(attrs={"size": 16, **hint}))


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

    def find(after: Any) -> tuple[list[Found], Any]:
        below = rows if after is None else rows.filter(pk__lt=after)
        found = list(below.order_by("-pk")[: LIMIT + 1])
        return found[:LIMIT], found[LIMIT - 1].pk if len(found) > LIMIT else None

    return page_of(visit, find, of=of, read_key=read_key)


def page_of(
    visit: Visit,
    find: Callable[[Key | None], tuple[list[Found], Key | None]],
    *,
    of: str,
    read_key: Callable[[str], Key],
) -> ListPage[Found]:
    """Return the page of a list that the address names, for lists with a search of their own.

    `find` takes the key after which the page begins (None: the first page). It returns the rows,
    and the key after which the next page begins (None: this is the last).
    """
    query = visit.request.GET.copy()
    cursor = query.pop(CURSOR, [""])[-1]
    mark = cursors.mark_of(f"page:{of}", visit.access.actor, sorted(query.lists()))
    rows, last = find(read_key(read(cursor, mark)) if cursor else None)
    following = None if last is None else _address(visit, query, cursors.write(mark, last))
    return ListPage(rows, following, _address(visit, query, None) if cursor else None)


def read(cursor: str, mark: str) -> str:
    """Return the key in a cursor of this list; raise the answer 400 for any other text."""
    try:
        return cursors.read(cursor, mark)
    except cursors.WrongCursor:
        text = _("cursor: is not the address of a next page of this list")
        raise PageError(HTTPStatus.BAD_REQUEST, text) from None


def _address(visit: Visit, query: QueryDict, cursor: str | None) -> str:
    shown = query.copy()
    if cursor is not None:
        shown[CURSOR] = cursor
    return f"{visit.request.path}?{shown.urlencode()}"
