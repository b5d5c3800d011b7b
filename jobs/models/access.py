"""Who may see and do what: Django's permissions, narrowed to the owners a person looks after.

Superusers look after all owners. Everybody else sees the rows of the owners of which they are
a member, and acts on those where their role allows it; another owner's row does not exist.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from django.db import models

from jobs.models import Membership, Role

SEES: Final = frozenset(Role)
OPERATES: Final = frozenset({Role.OPERATOR, Role.ADMIN})
EDITS: Final = frozenset({Role.ADMIN})

Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


def sees_all(user: Any) -> bool:
    """Say whether a person looks after every owner."""
    return bool(user.is_active and user.is_superuser)


def owner_ids(user: Any, roles: frozenset[Role] = SEES) -> frozenset[int]:
    """Return the owners of which a person is a member in one of the roles."""
    return frozenset(owner for owner, role in _memberships(user).items() if role in roles)


def narrowed(rows: Rows, user: Any, *, path: str, roles: frozenset[Role] = SEES) -> Rows:
    """Return the rows whose owner (at `path` from the row) a person looks after in such a role."""
    if sees_all(user):
        return rows
    return rows.filter(**{f"{path}__in": owner_ids(user, roles)})


def has_role(user: Any, owner_id: int | None, roles: frozenset[Role]) -> bool:
    """Say whether a person may act in one of the roles for an owner."""
    return sees_all(user) or owner_id in owner_ids(user, roles)


def has_some_role(user: Any, roles: frozenset[Role]) -> bool:
    """Say whether there is an owner for whom a person may act in one of the roles."""
    return sees_all(user) or bool(owner_ids(user, roles))


def _memberships(user: Any) -> dict[int, str]:
    # Kept on the person, whom Django loads anew for each request.
    kept: dict[int, str] | None = getattr(user, "_fairshift_roles", None)
    if kept is None:
        rows = Membership.objects.filter(user_id=user.pk).values_list("owner_id", "role")
        kept = user._fairshift_roles = dict(rows) if user.is_active else {}
    return kept
