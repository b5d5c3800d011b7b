"""Requests about webhooks and mail subscriptions: listing them, and finding one."""

from __future__ import annotations

from typing import Any, TypeVar

from django.http import HttpRequest

from jobs.actions import refuse_without_scope
from jobs.api.kit.callers import caller
from jobs.api.kit.pages import Cursor, Page
from jobs.api.kit.problems import first_of
from jobs.models import Scope
from jobs.models.access import Access
from jobs.models.notice import Interest

Row = TypeVar("Row", bound=Interest)


def visible(access: Access, model: type[Row]) -> Any:
    """Return the rows that a caller administers, with their owners."""
    rows = model._default_manager.select_related("owner")
    return access.narrowed(rows, scope=Scope.ADMIN)


def listed(
    request: HttpRequest, page: Page, model: type[Row], *, of: str
) -> tuple[list[Row], str | None]:
    """Return a page of them, newest first, and the cursor of the next one. `of` names the list."""
    access = caller(request)
    cursor = Cursor.read(page, of=of, caller=access.actor)
    rows_and_next: tuple[list[Row], str | None] = cursor.newest_first(visible(access, model))
    return rows_and_next


def found(request: HttpRequest, model: type[Row], key: int) -> Row:
    """Return one of them; refuse another one as unknown."""
    row: Row = first_of(visible(caller(request), model).filter(pk=key))
    refuse_without_scope(caller(request), Scope.ADMIN, row.owner_id)
    return row
