"""Owners: list and get."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from jobs.actions.filters.owners import OwnerFilter
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.problems import not_found
from jobs.api.owners.router import router
from jobs.api.owners.schemas import OwnerDetails, etag_of_owner
from jobs.models import Owner, Scope
from jobs.models.access import Access

READS = needs(Scope.READ, "jobs.view_owner")


def find_owner(access: Access, slug: str) -> Owner:
    """Return an owner that the caller sees; raise Problem if there is none."""
    # A slug is ASCII; PostgreSQL refuses NUL also in queries.
    if slug.isascii() and slug.isprintable():
        owner: Owner | None = access.narrowed(Owner.objects.filter(slug=slug), path="pk").first()
        if owner is not None:
            return owner
    raise not_found()


@router.get("", auth=READS, response=PageOf[OwnerDetails], operation_id="list_owners")
def list_owners(
    request: HttpRequest, filters: Query[OwnerFilter], page: Page
) -> PageOf[OwnerDetails]:
    """Return the caller's owners, newest first."""
    access = caller(request)
    filter_text = filters.model_dump_json()
    cursor = Cursor.read(page, of="owners", caller=access.actor, filters=filter_text)
    rows = filters.narrow(access.narrowed(Owner.objects.all(), path="pk"), access=access)
    owners, following = cursor.newest_first(rows)
    return PageOf[OwnerDetails](items=[OwnerDetails.of(owner) for owner in owners], next=following)


@router.get("/{slug}", auth=READS, response=OwnerDetails, operation_id="get_owner")
def get_owner(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """Return one owner. Its ETag is for `If-Match` of a change."""
    owner = find_owner(caller(request), slug)
    if not_modified := unchanged(request, response, etag_of_owner(owner)):
        return not_modified
    return OwnerDetails.of(owner)
