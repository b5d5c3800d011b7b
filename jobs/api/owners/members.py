"""Members of an owner: users with their roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Schema, Status
from pydantic import ConfigDict, Field

from jobs.actions.texts import Reason, Text
from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.etags import IF_MATCH, etag_of, refuse_stale, unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.problems import first_of, not_found
from jobs.api.owners.reading import find_owner
from jobs.api.owners.router import router
from jobs.core import barrier
from jobs.models import Membership, Owner, Role, Scope
from jobs.owners.members import add_member, change_member, lock_members, remove_member

READS = needs(Scope.ADMIN, "jobs.view_membership")
ADDS = needs(Scope.ADMIN, "jobs.add_membership")
CHANGES = needs(Scope.ADMIN, "jobs.change_membership")
REMOVES = needs(Scope.ADMIN, "jobs.delete_membership")

PROBLEM: Final = {"$ref": "#/components/responses/Problem"}


class Member(Schema):
    """A user who is a member of an owner."""

    user: str = Field(description="The user's name.")
    role: Role

    @classmethod
    def of(cls, member: Membership) -> Member:
        return cls(user=member.user.get_username(), role=Role(member.role))


class MemberChange(Schema):
    """The role of a member."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    reason: Reason = ""


class MemberToCreate(MemberChange):
    """A user who becomes a member."""

    user: Annotated[Text, Field(min_length=1, max_length=150, description="The user's name.")]


@router.get("/{slug}/members", auth=READS, response=PageOf[Member], operation_id="list_members")
def list_members(request: HttpRequest, slug: str, page: Page) -> PageOf[Member]:
    """Return the members of an owner, newest first."""
    owner = _administered(request, slug)
    cursor = Cursor.read(page, of="members", caller=caller(request).actor, filters=slug)
    rows = Membership.objects.filter(owner=owner).select_related("user")
    # Users have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        members, following = cursor.newest_first(rows)
    return PageOf[Member](items=[Member.of(member) for member in members], next=following)


@router.post("/{slug}/members", auth=ADDS, response={201: Member}, operation_id="create_member")
def add(request: HttpRequest, response: HttpResponse, slug: str, body: MemberToCreate) -> Member:
    """Make a user a member of an owner."""
    owner = _administered(request, slug)
    with barrier.lifted():
        member = add_member(
            owner, body.user, role=body.role, actor=caller(request).actor, reason=body.reason
        )
        made = Member.of(member)
        response["Location"] = f"{request.path}/{quote(made.user, safe='')}"
        response["ETag"] = _etag(member)
        return made


@router.get("/{slug}/members/{user}", auth=READS, response=Member, operation_id="get_member")
def get_member(request: HttpRequest, response: HttpResponse, slug: str, user: str) -> Any:
    """Return one member, by the user's name."""
    member = _found(_administered(request, slug), user)
    if not_modified := unchanged(request, response, _etag(member)):
        return not_modified
    return Member.of(member)


@router.patch(
    "/{slug}/members/{user}",
    auth=CHANGES,
    response=Member,
    operation_id="change_member",
    openapi_extra=IF_MATCH,
)
def change(
    request: HttpRequest, response: HttpResponse, slug: str, user: str, body: MemberChange
) -> Member:
    """Give a member another role. `If-Match` with its ETag is required.

    The last admin of an owner stays one, unless the caller is an admin of the installation.
    """
    with _locked(request, slug, user) as member:
        change_member(member, role=body.role, actor=caller(request).actor, reason=body.reason)
        response["ETag"] = _etag(member)
        return Member.of(member)


@router.delete(
    "/{slug}/members/{user}",
    auth=REMOVES,
    response={204: None},
    operation_id="delete_member",
    openapi_extra={**IF_MATCH, "responses": {409: PROBLEM}},
)
def remove(request: HttpRequest, slug: str, user: str) -> Status:
    """End a membership. `If-Match` with its ETag is required.

    The last admin of an owner stays, unless the caller is an admin of the installation.
    """
    with _locked(request, slug, user) as member:
        remove_member(member, actor=caller(request).actor)
    return Status(204, None)


def _administered(request: HttpRequest, slug: str) -> Owner:
    owner = find_owner(caller(request), slug)
    refuse_other_scope(request, Scope.ADMIN, owner.pk)
    return owner


@contextmanager
def _locked(request: HttpRequest, slug: str, user: str) -> Iterator[Membership]:
    """Yield a member, locked with the barrier lifted, if it is the version that If-Match names."""
    owner = _administered(request, slug)
    with barrier.lifted(), transaction.atomic():
        lock_members(owner)
        member = _found(owner, user)
        refuse_stale(request, _etag(member), is_required=True)
        yield member


def _found(owner: Owner, user: str) -> Membership:
    if user.isprintable():
        field = f"user__{get_user_model().USERNAME_FIELD}"
        members = Membership.objects.select_related("owner", "user")
        # Users have no owner, and are not readable behind the barrier.
        with barrier.lifted():
            return first_of(members.filter(owner=owner, **{field: user}))
    raise not_found()


def _etag(member: Membership) -> str:
    return etag_of("member", member.pk, str(member.role))
