"""Who may see and do what: Django's permissions, narrowed by membership of owners.

Superusers have access to all owners. Other users see the rows of owners of which they are members,
and act on those that their role allows. Rows of other owners do not exist for them.
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
    """Say whether a user has access to all owners."""
    return bool(user.is_active and user.is_superuser)


def owner_ids(user: Any, roles: frozenset[Role] = SEES) -> frozenset[int]:
    """Return the ids of owners of which a user is a member in one of the roles."""
    return frozenset(owner for owner, role in _memberships(user).items() if role in roles)


def narrowed(rows: Rows, user: Any, *, path: str, roles: frozenset[Role] = SEES) -> Rows:
    """Return the rows for whose owner (at `path` from the row) a user has one of the roles."""
    if sees_all(user):
        return rows
    return rows.filter(**{f"{path}__in": owner_ids(user, roles)})


def has_role(user: Any, owner_id: int | None, roles: frozenset[Role]) -> bool:
    """Say whether a user has one of the roles for an owner."""
    return sees_all(user) or owner_id in owner_ids(user, roles)


def has_some_role(user: Any, roles: frozenset[Role]) -> bool:
    """Say whether a user has one of the roles for any owner."""
    return sees_all(user) or bool(owner_ids(user, roles))


def _memberships(user: Any) -> dict[int, str]:
    # Cached on the user, whom Django loads for each request.
    kept: dict[int, str] | None = getattr(user, "_fairshift_roles", None)
    if kept is None:
        rows = Membership.objects.filter(user_id=user.pk).values_list("owner_id", "role")
        kept = user._fairshift_roles = dict(rows) if user.is_active else {}
    return kept
