"""Owners: list and get."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from jobs.actions import find
from jobs.actions.filters.owners import OwnerFilter
from jobs.actions.owners import OWNERS
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.api.owners.router import router
from jobs.api.owners.schemas import OwnerDetails, etag_of_owner
from jobs.models import Owner, Scope
from jobs.models.access import Access

READS = needs(Scope.READ, "jobs.view_owner")


def find_owner(access: Access, slug: str) -> Owner:
    """Return an owner that the caller sees; raise NotFound if there is none."""
    found: Owner = find(OWNERS, slug, by=access)
    return found


@router.get("", auth=READS, response=PageOf[OwnerDetails], operation_id="list_owners")
def list_owners(
    request: HttpRequest, filters: Query[OwnerFilter], page: Page
) -> PageOf[OwnerDetails]:
    """Return the caller's owners, newest first."""
    access = caller(request)
    rows = filters.narrow(access.narrowed(OWNERS.rows(), path="pk"), access=access)
    return newest_first(request, page, rows, OwnerDetails.of, of="owners", filters=filters)


@router.get("/{slug}", auth=READS, response=OwnerDetails, operation_id="get_owner")
def get_owner(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """Return one owner. Its ETag is for `If-Match` of a change."""
    owner = find_owner(caller(request), slug)
    return unchanged(request, response, etag_of_owner(owner)) or OwnerDetails.of(owner)
