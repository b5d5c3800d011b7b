"""A token never can more than the user or token that made it, now (G29)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from pytest_django import Settings

from jobs.core import barrier
from jobs.models import ApiToken, Membership, Owner, Role, Scope
from jobs.models.access import SCOPES_OF_ROLE, access_of
from jobs.owners.tokens import make_token, revoke_token, use_token
from tests.jobs.api.conftest import ALL, client_of, post
from tests.jobs.api.matrix.operations import OPERATIONS, Operation
from tests.jobs.api.matrix.world import unknown_keys

pytestmark = pytest.mark.usefixtures("lowered")


def person(owner: Owner, *, without: str = "", name: str = "ada") -> User:
    """Return an admin of an owner with all permissions of the project but one."""
    user = User.objects.create_user(name, is_staff=True)
    given = Permission.objects.filter(content_type__app_label="jobs")
    user.user_permissions.set(given.exclude(codename=without.partition(".")[2]))
    Membership.objects.create(owner=owner, user=user, role=Role.ADMIN)
    return user


def scopes_now(secret: str, owner: Owner) -> set[str]:
    """Return the scopes of a token for an owner at its next request; empty if it is refused."""
    token = use_token(secret)
    barrier.lower()
    return set(access_of(token).of(owner.pk)) if token else set()


ENDS: dict[str, Callable[[User], Any]] = {
    "demoted": lambda user: Membership.objects.filter(user=user).update(role=Role.VIEWER),
    "removed": lambda user: Membership.objects.filter(user=user).delete(),
    "deactivated": lambda user: User.objects.filter(pk=user.pk).update(is_active=False),
    "deleted": lambda user: user.delete(),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("is_direct", [True, False], ids=["token", "token of a token"])
def test_a_token_ends_with_its_maker(acme: Owner, end: str, is_direct: bool) -> None:
    """Also a token that a token of the maker made; the owner's other tokens go on."""
    user = person(acme)
    made = make_token("robot", scopes=ALL, owner=acme, actor=user)
    if not is_direct:
        made = make_token("child", scopes=ALL, owner=acme, actor=made.token)
    _, other = make_token("command", scopes=ALL, owner=acme)
    assert scopes_now(made.secret, acme) == set(ALL)
    ENDS[end](user)
    assert scopes_now(made.secret, acme) == ({"read"} if end == "demoted" else set())
    assert scopes_now(other, acme) == set(ALL)


def test_a_token_ends_with_the_token_that_made_it(acme: Owner) -> None:
    """Who has stolen a token keeps none of those that were made with it."""
    parent = make_token("robot", scopes=ALL, owner=acme).token
    _, secret = make_token("child", scopes=["read"], owner=acme, actor=parent)
    assert scopes_now(secret, acme) == {"read"}
    revoke_token(parent)
    assert scopes_now(secret, acme) == set()


def test_a_token_for_all_owners_shrinks_to_those_of_its_maker(acme: Owner, stranger: Owner) -> None:
    """A superuser who is one no more: it reads what the maker reads, behind the barrier too."""
    root = User.objects.create_superuser("root")
    _, secret = make_token("console", scopes=["read", "admin"], actor=root)
    assert scopes_now(secret, stranger) == {"read", "admin"}
    User.objects.filter(pk=root.pk).update(is_superuser=False)
    Membership.objects.create(owner=acme, user=root, role=Role.VIEWER)
    root.user_permissions.set(Permission.objects.filter(codename="view_owner"))
    assert (scopes_now(secret, acme), scopes_now(secret, stranger)) == ({"read"}, set())
    use_token(secret)
    assert list(Owner.objects.values_list("slug", flat=True)) == ["acme"]
    barrier.lower()
    answer = client_of(secret).get("/api/v1/owners")
    assert [one["slug"] for one in answer.json()["items"]] == ["acme"]


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_has_the_scopes_that_the_role_of_its_maker_has(
    acme: Owner, role: Role, scope: Scope
) -> None:
    """Each scope alone, each role that its maker may get later."""
    user = person(acme)
    _, secret = make_token("robot", scopes=[scope], owner=acme, actor=user)
    Membership.objects.filter(user=user).update(role=role)
    assert scopes_now(secret, acme) == {scope} & SCOPES_OF_ROLE[role]


@pytest.mark.parametrize("is_for_all", [False, True])
def test_a_token_needs_no_read_for_its_other_scopes(
    committed: None, acme: Owner, settings: Settings, is_for_all: bool
) -> None:
    """A program that only submits, made by a user: its owner is known behind the barrier, too."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}
    user = User.objects.create_superuser("root") if is_for_all else person(acme)
    owner = None if is_for_all else acme
    _, secret = make_token("robot", scopes=["submit"], owner=owner, actor=user)
    body = {"task": "tests.add", "arguments": {"x": 1, "y": 2}, "owner": "acme"}
    answer = post(client_of(secret), "/runs", body)
    barrier.lower()
    User.objects.all().delete()
    assert answer.status_code == 202, answer.content


def permission_of(operation: Operation) -> str:
    """Return the Django permission that an operation needs of a session."""
    from jobs.api.site import api

    found = {
        (one.operation_id, callback.permission)
        for _prefix, router in api._routers
        for view in router.path_operations.values()
        for one in view.operations
        for callback in one.auth_callbacks
        if hasattr(callback, "permission")
    }
    [permission] = {permission for name, permission in found if name == operation.id}
    return str(permission)


def test_arguments_are_seen_as_far_as_the_maker_sees_them(acme: Owner) -> None:
    """The scope `operate` alone does not show them."""
    blind = make_token(
        "a", scopes=ALL, owner=acme, actor=person(acme, without="jobs.view_arguments")
    )
    seeing = make_token("b", scopes=ALL, owner=acme, actor=person(acme, name="mia"))
    assert not access_of(ApiToken.objects.get(pk=blind.token.pk)).sees_arguments(acme.pk)
    assert access_of(ApiToken.objects.get(pk=seeing.token.pk)).sees_arguments(acme.pk)
    assert Scope.OPERATE in access_of(blind.token).of(acme.pk)


def one_of_each_permission() -> Iterator[Any]:
    """Return all operations; `make test` plays the first one that needs a permission."""
    seen: set[str] = set()
    for operation in OPERATIONS:
        is_first = (permission := permission_of(operation)) not in seen
        seen.add(permission)
        marks = () if is_first else pytest.mark.proof
        yield pytest.param(operation, id=str(operation), marks=marks)


@pytest.mark.parametrize("operation", list(one_of_each_permission()))
def test_an_operation_needs_the_permission_of_the_token_s_maker(
    acme: Owner, operation: Operation
) -> None:
    """Each permission that a session needs is withheld from the maker of a token."""
    permission = permission_of(operation)
    secret = make_token("robot", scopes=ALL, owner=acme, actor=person(acme, without=permission))
    path = operation.path.format(**unknown_keys(operation))
    answer: Any = client_of(secret.secret).generic(operation.method, path)
    barrier.lower()
    assert answer.status_code == 403, answer.content
    assert answer.json()["detail"] == f"this needs the permission {permission} of the token's maker"
