"""The caller of a request: an API token in the Authorization header, or a session of the admin.

`needs(scope, permission)` is the `auth` of an operation. It finds the caller, raises the barrier
(PostgreSQL's row-level security), refuses a caller that does not have the scope for any owner, and
reads the body. Afterwards `caller(request)` returns the caller.
"""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest
from ninja.security import HttpBearer, SessionAuth

from jobs.actions import refuse_without_permission
from jobs.api.kit.bodies import WITH_BODY, read_body
from jobs.api.kit.problems import Problem
from jobs.core import barrier
from jobs.models import ApiToken, Scope
from jobs.models.access import Access, access_of
from jobs.owners.request_rates import refuse_fast_caller
from jobs.owners.tokens import use_token


class _Needing:
    """The scope and Django's permission that an operation needs. Mix in before Ninja's classes."""

    def __init__(self, scope: Scope, permission: str) -> None:
        super().__init__()
        self.scope = scope
        self.permission = permission


class Token(_Needing, HttpBearer):
    """A token, sent as `Authorization: Bearer …`."""

    def authenticate(self, request: HttpRequest, token: str) -> Access | None:
        found = _first_statement(token)
        if found is None:
            return None
        access = access_of(found)
        refuse_without_permission(access, self.permission)
        return _admitted(request, access, self.scope)


class Session(_Needing, SessionAuth):
    """The session of a user of the admin; a change needs Django's CSRF token, too."""

    def __call__(self, request: HttpRequest) -> Access | None:
        # A program with a token sends no cookie, and is not asked for a CSRF token.
        if "Authorization" in request.headers or self.param_name not in request.COOKIES:
            return None
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Access | None:
        user: Any = request.user
        if not user.is_authenticated or not user.is_active:
            return None
        access = access_of(user)
        refuse_without_permission(access, self.permission)
        if not access.sees_all:
            barrier.raise_for(access.owner_ids())
        return _admitted(request, access, self.scope)


def _first_statement(secret: str) -> ApiToken | None:
    """Return the token of a secret if it may be used; the query also tests the connection.

    Without this, Django would send `SELECT 1` first. If the connection was lost, the query had no
    effect, and is repeated once on a new connection.
    """
    is_first = not connection.in_atomic_block and connection.connection is not None
    if not is_first:
        return use_token(secret)
    connection.health_check_done = True  # type: ignore[attr-defined] # not in the stubs
    try:
        return use_token(secret)
    except (OperationalError, InterfaceError):
        if not connection.connection.closed:
            raise
        barrier.lower()
        connection.close()
        return use_token(secret)


def needs(scope: Scope, permission: str) -> list[Token | Session]:
    """Return the `auth` of an operation: the scope it needs, and Django's permission.

    A token needs the permission of the user who made it.
    """
    return [Token(scope, permission), Session(scope, permission)]


def caller(request: HttpRequest) -> Access:
    """Return the caller that `needs` has found."""
    access: Access = request.auth  # type: ignore[attr-defined]
    return access


def forbidden(needed: str) -> Problem:
    """Return the answer to a known caller that may not do this."""
    return Problem(403, "forbidden", f"This needs {needed}.")


def _admitted(request: HttpRequest, access: Access, scope: Scope) -> Access:
    refuse_fast_caller(access)
    if not access.has_somewhere(scope):
        raise forbidden(f"the scope {scope.value!r}")
    if request.method in WITH_BODY:
        read_body(request)
    return access
