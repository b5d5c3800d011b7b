"""jobs/owners/members.py: an owner does not lose its last admin by a race."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from jobs.core.errors import LastAdmin, OptionError
from jobs.models import Membership, Owner, Role
from jobs.owners.members import add_member, remove_member
from jobs.owners.tokens import make_token


def _member(owner: Owner, name: str, role: Role) -> Membership:
    user: Any = get_user_model().objects.create(username=name)
    return Membership.objects.create(owner=owner, user=user, role=role)


def test_a_member_that_became_the_last_admin_is_not_removed(db: None, acme: Owner) -> None:
    """The role that counts is the one under the lock, not the one that the caller has read."""
    ada, eve = _member(acme, "ada", Role.ADMIN), _member(acme, "eve", Role.OPERATOR)
    Membership.objects.filter(pk=eve.pk).update(role=Role.ADMIN)
    Membership.objects.filter(pk=ada.pk).update(role=Role.VIEWER)
    with pytest.raises(LastAdmin):
        remove_member(eve, actor=ada.user)
    assert Membership.objects.filter(pk=eve.pk).exists()


def _actor(kind: str, acme: Owner, northwind: Owner) -> Any:
    """Return an admin of acme and northwind, or another caller."""
    if kind == "code":
        return None
    if kind == "token":
        return make_token("robot", scopes=["admin"], owner=acme).token
    if kind == "token for all owners":
        return make_token("robot", scopes=["admin"]).token
    if kind == "superuser":
        return get_user_model().objects.create_superuser("root")
    user = _member(acme, "boss", Role.ADMIN).user
    Membership.objects.create(owner=northwind, user=user, role=Role.ADMIN)
    if kind == "one who lists users":
        user.user_permissions.add(Permission.objects.get(codename="view_user"))
    return user


@pytest.mark.parametrize(
    ("kind", "adds"),
    [
        ("admin", {"colleague"}),
        ("token", set()),
        ("one who lists users", {"colleague", "outsider", "lone"}),
        ("superuser", {"colleague", "outsider", "lone"}),
        ("token for all owners", {"colleague", "outsider", "lone"}),
        ("code", {"colleague", "outsider", "lone"}),
    ],
)
def test_a_name_that_the_caller_may_not_see_is_answered_as_an_unknown_one(
    acme: Owner, northwind: Owner, stranger: Owner, kind: str, adds: set[str]
) -> None:
    """Members of owners that the caller administers are seen; so are all users by those who may
    list users.
    """
    _member(northwind, "colleague", Role.VIEWER)
    _member(stranger, "outsider", Role.VIEWER)
    get_user_model().objects.create(username="lone")
    actor = _actor(kind, acme, northwind)

    def answer(name: str) -> str:
        try:
            return add_member(acme, name, role=Role.VIEWER, actor=actor).role
        except OptionError as error:
            return str(error).replace(name, "NAME")

    unknown = answer("nobody")
    assert unknown != Role.VIEWER
    for name in ("colleague", "outsider", "lone"):
        assert answer(name) == (Role.VIEWER if name in adds else unknown)
    assert set(acme.memberships.values_list("user__username", flat=True)) - {"boss"} == adds
