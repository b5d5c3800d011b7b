"""Members of owners: users are added in a role, change it, and are removed.

Only an admin of the installation removes an owner's last admin, or gives it another role. A caller
that may not list users adds those that it sees: members of owners that it administers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_permission_codename, get_user_model
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from jobs.core.errors import LastAdmin, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_name, refuse_text
from jobs.models import ApiToken, AuditEntry, Membership, Owner, Role, Scope
from jobs.models.access import access_of
from jobs.models.verbs import Actor


@contextmanager
def locked_members(owner: Owner) -> Iterator[None]:
    """Lock an owner's members in a transaction of its own.

    Without it, two admins could remove each other at the same time.
    """
    with transaction.atomic():
        Owner.objects.select_for_update(no_key=True).get(pk=owner.pk)
        yield


def add_member(
    owner: Owner, username: str, *, role: str, actor: Actor = None, reason: str = ""
) -> Membership:
    """Make a user a member.

    Raises OptionError for a user that is a member, and for one that the actor may not add or that
    does not exist: both have the same text, so that nothing is learned of other users.
    """
    _refuse_wrong(role, reason)
    refuse_name("user", username, most=150)
    user = addable_users(actor).filter(**{get_user_model().USERNAME_FIELD: username}).first()
    if user is None:
        raise OptionError("user", _none_such(username, actor))
    with locked_members(owner):
        member, is_new = Membership.objects.get_or_create(
            owner=owner, user=user, defaults={"role": role}
        )
        if not is_new:
            raise OptionError("user", f"{username} is a member already, as {member.role}")
        _note("create", member, actor=actor, reason=reason, role=role)
    return member


def change_member(
    member: Membership, *, role: str, actor: Actor = None, reason: str = ""
) -> Membership:
    """Give a member another role; raise LastAdmin if no admin would be left."""
    _refuse_wrong(role, reason)
    with locked_members(member.owner):
        member.refresh_from_db()
        before = member.role
        if role != Role.ADMIN:
            _refuse_last(member, actor)
        member.role = role
        member.save(update_fields=["role"])
        _note("change", member, actor=actor, reason=reason, before=before, role=role)
    return member


def remove_member(member: Membership, *, actor: Actor = None, reason: str = "") -> None:
    """End a membership; raise LastAdmin if no admin would be left."""
    with locked_members(member.owner):
        # It may have become the last admin since the caller read it.
        member.refresh_from_db(fields=["role"])
        _refuse_last(member, actor)
        _note("delete", member, actor=actor, reason=reason, role=member.role)
        member.delete()


def _refuse_wrong(role: str, reason: str) -> None:
    refuse_text("reason", reason, most=REASON_LIMIT)
    if role not in Role.values:
        raise OptionError("role", f"is one of: {', '.join(Role.values)}")


def addable_users(actor: Any) -> QuerySet[Any]:
    """Return the users that an actor may make members; None: code may add all active ones."""
    users: Any = get_user_model()._default_manager.filter(is_active=True)
    if _may_list_users(actor):
        return users
    administered = access_of(actor).owner_ids(Scope.ADMIN)
    seen = Membership.objects.filter(owner__in=administered, user=OuterRef("pk"))
    return users.filter(Exists(seen))


def _may_list_users(actor: Any) -> bool:
    if actor is None or access_of(actor).has(Scope.ADMIN):
        return True
    # Django's permissions have no owner: a token of one owner does not get them.
    users = get_user_model()._meta
    permission = f"{users.app_label}.{get_permission_codename('view', users)}"
    return not isinstance(actor, ApiToken) and actor.is_active and actor.has_perm(permission)


def _none_such(username: str, actor: Actor) -> str:
    if _may_list_users(actor):
        return f"there is no active user {username!r:.160}"
    return (
        f"you may not add {username!r:.160}, if there is such a user: name a member of an owner"
        " that you administer, or ask an admin of the installation"
    )


def _refuse_last(member: Membership, actor: Actor) -> None:
    if actor is None or access_of(actor).has(Scope.ADMIN):
        return
    admins = Membership.objects.filter(owner=member.owner_id, role=Role.ADMIN, user__is_active=True)
    if member.role == Role.ADMIN and not admins.exclude(pk=member.pk).exists():
        raise LastAdmin(member.user.get_username(), member.owner.slug)


def _note(action: str, member: Membership, *, actor: Actor, reason: str, **details: str) -> None:
    name = member.user.get_username()
    AuditEntry.write(action, on=member, actor=actor, reason=reason, user=name, **details)
