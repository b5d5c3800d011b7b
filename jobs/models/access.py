"""Access control: the scopes of a caller, for each owner or for all owners.

Callers are users and API tokens. Superusers have access to all owners. Other users see the rows of
owners of which they are members, and act on those that their role allows, as far as Django's
permissions allow it, too. A token has its own scopes, for its owner or for all owners, as far as
the user or token that made it has them now. Rows of other owners do not exist for a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from django.db import models

from jobs.core import barrier
from jobs.models.owner import Membership, Role
from jobs.models.token import ApiToken, Scope

SCOPES_OF_ROLE: Final[Mapping[str, frozenset[Scope]]] = {
    Role.VIEWER: frozenset({Scope.READ}),
    Role.OPERATOR: frozenset({Scope.READ, Scope.SUBMIT, Scope.OPERATE}),
    Role.APPROVER: frozenset({Scope.READ, Scope.APPROVE}),
    Role.ADMIN: frozenset(Scope),
}
"""The scopes of a member in each role."""

Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


@dataclass(frozen=True, slots=True)
class Access:
    """The scopes of one caller. Get it with `access_of`."""

    actor: Any
    """The user or the token, for the audit."""
    everywhere: frozenset[Scope] = frozenset()
    """Scopes for all owners."""
    by_owner: Mapping[int, frozenset[Scope]] = field(default_factory=dict)
    """Scopes for some owners, by their ids."""
    maker: Access | None = None
    """The maker's rights now, which limit a token; None if code or a command made the token."""

    @property
    def sees_all(self) -> bool:
        """Whether the caller sees the rows of all owners."""
        return Scope.READ in self.everywhere

    def has(self, scope: Scope, owner_id: int | None = None) -> bool:
        """Say whether the caller has a scope for an owner; None: for the whole installation."""
        return scope in self.everywhere or (
            owner_id is not None and scope in self.by_owner.get(owner_id, ())
        )

    def of(self, owner_id: int) -> frozenset[Scope]:
        """Return the scopes for an owner."""
        return self.everywhere | self.by_owner.get(owner_id, frozenset())

    def has_somewhere(self, scope: Scope) -> bool:
        """Say whether the caller has a scope for any owner."""
        return scope in self.everywhere or any(scope in had for had in self.by_owner.values())

    def permits(self, permission: str) -> bool:
        """Say whether Django's permissions allow it. A token has those of its maker."""
        if isinstance(self.actor, ApiToken):
            return self.maker is None or self.maker.permits(permission)
        return self.actor is not None and bool(self.actor.has_perm(permission))

    def sees_arguments(self, owner_id: int) -> bool:
        """Say whether the caller sees arguments, results and error texts of an owner's runs.

        These are often secrets. An error message often repeats an argument.
        """
        if isinstance(self.actor, ApiToken):
            may_maker = self.maker is None or self.maker.sees_arguments(owner_id)
            return self.has(Scope.OPERATE, owner_id) and may_maker
        return self.has(Scope.READ, owner_id) and self.permits("jobs.view_arguments")

    def owner_ids(self, scope: Scope = Scope.READ) -> frozenset[int]:
        """Return the ids of the owners for which the caller has a scope; empty if it is for all."""
        return frozenset(owner for owner, had in self.by_owner.items() if scope in had)

    @property
    def reached(self) -> frozenset[int]:
        """The ids of the owners for which the caller has any scope, if it has none for all."""
        return frozenset(owner for owner, had in self.by_owner.items() if had)

    def narrowed(self, rows: Rows, *, path: str = "owner", scope: Scope = Scope.READ) -> Rows:
        """Return the rows for whose owner (at `path` from the row) the caller has a scope."""
        if scope in self.everywhere:
            return rows
        return rows.filter(**{f"{path}__in": self.owner_ids(scope)})


def access_of(caller: Any) -> Access:
    """Return what a user or a token may do; an Access is returned as it is.

    The memberships of a user, or of a token's maker, are read once for each request.
    """
    if isinstance(caller, Access):
        return caller
    # Cached on the user or token, which is loaded for each request.
    kept: Access | None = getattr(caller, "_fairshift_access", None)
    if kept is None:
        of = _of_token if isinstance(caller, ApiToken) else _of_user
        kept = caller._fairshift_access = of(caller)
    return kept


def _of_user(user: Any) -> Access:
    if not user.is_active:
        return Access(user)
    if user.is_superuser:
        return Access(user, everywhere=frozenset(Scope))
    rows = Membership.objects.filter(user_id=user.pk).values_list("owner_id", "role")
    return Access(user, by_owner={owner: SCOPES_OF_ROLE[role] for owner, role in rows})


def _of_token(token: ApiToken) -> Access:
    scopes = frozenset(Scope(scope) for scope in token.scopes)
    maker = _maker_of(token) if token.has_maker else None
    if token.owner_id is not None:
        own = {token.owner_id: scopes}
        if maker is not None:
            own = {owner: maker.of(owner) & scopes for owner in own}
        return Access(token, by_owner=own, maker=maker)
    if maker is None:
        return Access(token, everywhere=scopes)
    by_owner = {owner: had & scopes for owner, had in maker.by_owner.items()}
    return Access(token, everywhere=maker.everywhere & scopes, by_owner=by_owner, maker=maker)


def _maker_of(token: ApiToken) -> Access:
    """Return what the maker of a token may do now: nothing if it is gone or ended itself."""
    # Users have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        maker = token.maker
        is_token = isinstance(maker, ApiToken)
        if maker is None or (
            is_token and not ApiToken.objects.usable().filter(pk=maker.pk).exists()
        ):
            return Access(None)
        return access_of(maker)
