"""Pages of lists: a cursor says after which row the next page begins.

A cursor is signed and names its list: a cursor of another list, caller or filter is refused. New
rows do not move the rows of later pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import BaseModel, Field

from jobs.api.kit.callers import caller
from jobs.api.kit.problems import Problem
from jobs.core import cursors

PAGE_LIMIT: Final = 500
PAGE_DEFAULT: Final = 50
CURSOR_LIMIT: Final = 300

Row = TypeVar("Row")
Found = TypeVar("Found", bound=Model)


class PageQuery(Schema):
    """One page of a list: its size and its place. Operations take it as `Page`."""

    limit: int = Field(PAGE_DEFAULT, ge=1, le=PAGE_LIMIT, description="Most rows of the page.")
    cursor: str = Field(
        "", max_length=CURSOR_LIMIT, description="`next` of the page before; empty: the first."
    )


Page = Annotated[PageQuery, Query()]


class PageOf(Schema, Generic[Row]):
    """One page of a list."""

    items: list[Row]
    next: str | None = Field(description="The cursor of the next page; null: this is the last.")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in one list after which a page begins."""

    mark: str
    """A digest of the list: its name, its caller and its filters."""
    after: str
    """The key of the last row before the page; empty: the first page."""
    limit: int

    @classmethod
    def read(cls, request: HttpRequest, page: PageQuery, *, of: str, filters: Any = None) -> Cursor:
        """Return the place that a page's query names; raise Problem for a foreign cursor.

        `of` names the list; `filters` are those of its query, or the key of the row that has it.
        """
        if isinstance(filters, BaseModel):
            filters = filters.model_dump_json()
        mark = cursors.mark_of(of, caller(request).actor, filters)
        if not page.cursor:
            return cls(mark, "", page.limit)
        try:
            return cls(mark, cursors.read(page.cursor, mark), page.limit)
        except cursors.WrongCursor:
            raise _refused() from None

    def newest_first(self, rows: QuerySet[Found]) -> tuple[list[Found], str | None]:
        """Return the rows of this page, the highest id first, and the cursor of the next page."""
        if self.after:
            rows = rows.filter(pk__lt=int(self.after))
        found = list(rows.order_by("-pk")[: self.limit + 1])
        return found[: self.limit], self.next([row.pk for row in found])

    def next(self, keys: Sequence[Any]) -> str | None:
        """Return the cursor of the next page, from the keys of one row more than this page has."""
        if len(keys) <= self.limit:
            return None
        return self.after_key(keys[self.limit - 1])

    def after_key(self, key: Any) -> str:
        """Return the cursor of the page after the row with this key."""
        return cursors.write(self.mark, key)


def newest_first(
    request: HttpRequest,
    page: PageQuery,
    rows: QuerySet[Found],
    shown: Callable[[Found], Row],
    *,
    of: str,
    filters: Any = None,
) -> PageOf[Row]:
    """Return a page of rows, the highest id first, each as `shown` returns it.

    `of` and `filters` are those of `Cursor.read`.
    """
    found, following = Cursor.read(request, page, of=of, filters=filters).newest_first(rows)
    return PageOf(items=[shown(row) for row in found], next=following)


def _refused() -> Problem:
    return Problem(
        422, "invalid_cursor", "cursor: is not `next` of a page of this list", field="cursor"
    )
