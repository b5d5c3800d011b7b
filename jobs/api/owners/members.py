"""Members of an owner: users with their roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import Field

from jobs.actions import refuse_without_scope
from jobs.actions.members import MEMBERS
from jobs.api.kit.actions import of_row, serve, serve_creation
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.api.kit.problems import not_found
from jobs.api.owners.reading import find_owner
from jobs.api.owners.router import router
from jobs.core import barrier
from jobs.models import Membership, Owner, Role, Scope

READS = needs(Scope.ADMIN, "jobs.view_membership")


class Member(Schema):
    """A user who is a member of an owner."""

    user: str = Field(description="The user's name.")
    role: Role

    @classmethod
    def of(cls, member: Membership) -> Member:
        return cls(user=member.user.get_username(), role=Role(member.role))


@router.get("/{slug}/members", auth=READS, response=PageOf[Member], operation_id="list_members")
def list_members(request: HttpRequest, slug: str, page: Page) -> PageOf[Member]:
    """Return the members of an owner, newest first."""
    owner = _administered(request, {"slug": slug})
    rows = Membership.objects.filter(owner=owner).select_related("user")
    # Users have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        return newest_first(request, page, rows, Member.of, of="members", filters=slug)


@router.get("/{slug}/members/{user}", auth=READS, response=Member, operation_id="get_member")
def get_member(request: HttpRequest, response: HttpResponse, slug: str, user: str) -> Any:
    """Return one member, by the user's name."""
    member = _found(request, {"slug": slug, "user": user})
    return unchanged(request, response, _etag(member)) or Member.of(member)


def _administered(request: HttpRequest, given: Mapping[str, Any]) -> Owner:
    owner = find_owner(caller(request), given["slug"])
    refuse_without_scope(caller(request), Scope.ADMIN, owner.pk)
    return owner


def _found(request: HttpRequest, given: Mapping[str, Any]) -> Membership:
    owner, user = _administered(request, given), given["user"]
    if not user.isprintable():
        raise not_found()
    found = {"owner": owner, f"user__{get_user_model().USERNAME_FIELD}": user}
    # Users have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        return Membership.objects.select_related("owner", "user").get(**found)


def _etag(member: Membership) -> str:
    return etag_of("member", member.pk, str(member.role))


ANSWER: Final = of_row(Member, _etag)
serve_creation(
    router, MEMBERS, ANSWER, address="/{slug}/members", owner_of=_administered, key="user"
)
serve(
    router,
    MEMBERS,
    "{slug}/members/{user}",
    ANSWER,
    etag_of=lambda member, _request: _etag(member),
    key_of=lambda request, given: _found(request, given).pk,
)
