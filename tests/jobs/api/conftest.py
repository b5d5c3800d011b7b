"""The callers of the named world: tokens with scopes, and clients that send them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.client import ClientHandler
from pytest_django import Settings

from jobs.core import barrier
from jobs.models import Membership, Owner, Role
from jobs.owners import caps, request_rates
from jobs.owners.tokens import make_token

ROOT = "/api/v1"
ALL = ("read", "submit", "operate", "approve", "admin")
ADD: dict[str, Any] = {"task": "tests.add", "arguments": {"x": 1, "y": 2}}
"""The body of a submit."""

Caller = Callable[..., Client]


@pytest.fixture(autouse=True)
def _own_limits(settings: Settings) -> None:
    """The tasks of scenes are on offer; counts of scenes before are forgotten."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}
    caps._counts.clear()
    request_rates._here._full_until.clear()


@pytest.fixture
def caller(db: None) -> Caller:
    """Make a client whose requests have a token of an owner; without one, of all owners."""

    def made(owner: Owner | None = None, *scopes: str, **options: Any) -> Client:
        barrier.lower()
        _, secret = make_token("scene", scopes=scopes or ALL, owner=owner, **options)
        return client_of(secret)

    return made


@cache
def _handler(middleware: tuple[str, ...]) -> ClientHandler:
    """Return the handler of all clients: its middleware looks through the static files once."""
    return ClientHandler(enforce_csrf_checks=False)


class WholeAnswers(Client):
    """A client that reads an answer to its end, also one that is sent in parts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.handler = _handler(tuple(settings.MIDDLEWARE))

    def request(self, **request: Any) -> Any:
        answer: Any = super().request(**request)
        if not answer.streaming:
            return answer
        content = b"".join(answer)
        return HttpResponse(content, status=answer.status_code, headers=answer.headers)


def client_of(secret: str) -> Client:
    """Return a client that sends a token with each request; none if it is empty."""
    return WholeAnswers(headers={"Authorization": f"Bearer {secret}"} if secret else None)


def logged_in(*permissions: str, name: str = "ada", checks: bool = False, **roles: str) -> Client:
    """Return a browser of a user with these permissions, and roles for owners."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    for slug, role in roles.items():
        Membership.objects.create(owner=Owner.objects.get(slug=slug), user=user, role=Role(role))
    client = Client(enforce_csrf_checks=checks)
    client.force_login(user)
    return client


def post(client: Client, path: str, body: Any, **headers: str) -> Any:
    """Send a body as JSON."""
    return client.post(f"{ROOT}{path}", body, content_type="application/json", headers=headers)


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements of this connection, prepared ones too; not those of the barrier."""
    found: list[str] = []

    def note(execute: Any, sql: str, *given: Any) -> Any:
        found.append(sql)
        return execute(sql, *given)

    with connection.execute_wrapper(note):
        yield found


def alike(*asks: Callable[[], Any], headers: bool = True) -> int:
    """Return the status of these requests, whose answers must have the same bytes and headers.

    And each must have taken as many statements.
    """
    answers, asked = [], set()
    for ask in asks:
        with statements() as found:
            answers.append(ask())
        asked.add(len(found))
    first, *others = answers
    for other in others:
        assert (other.status_code, other.content) == (first.status_code, first.content)
        assert not headers or other.headers == first.headers
    assert len(asked) == 1, asked
    return int(first.status_code)


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """Return the problem of an answer, which has this status and code."""
    assert (response.status_code, response.json()["code"]) == (status, code), response.content
    assert response["Content-Type"] == "application/problem+json"
    return response.json()
