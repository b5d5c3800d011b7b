"""The people of the named world, and runs in the states that pages must show."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from jobs.models import Job, Owner, Run
from tests.jobs.api.conftest import logged_in
from tests.jobs.scenes import failed

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/app/rules.py", line 7\nTimeoutError: no answer'
)


@pytest.fixture
def offered(settings: Settings) -> None:
    """The tasks of scenes are on offer."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}


@pytest.fixture
def root(db: None) -> User:
    """A superuser, who looks after every owner."""
    return User.objects.create_superuser("root", password="root")


@pytest.fixture
def as_root(root: User) -> Client:
    """A browser in which the superuser is logged in."""
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def person(db: None) -> Callable[..., Client]:
    """Log somebody in who is staff, has Django permissions, and roles for owners."""
    return lambda name, *permissions, **roles: logged_in(*permissions, name=name, **roles)


@pytest.fixture
def failed_run(acme: Owner) -> Run:
    """A run of acme that failed in its only attempt."""
    error, message = "builtins.TimeoutError", "no answer within 5 s"
    given = {"labels": {"site": "berlin"}, "target": "sw-1", "traceback": TRACEBACK}
    return failed(acme, error, message, **given)


def stored_job(owner: Owner, key: str = "sum", **columns: Any) -> Job:
    """Store a job that adds 1 and 2, past the form."""
    given = {"task": "tests.add", "payload": b'[[], {"x": 1, "y": 2}, {}]', **columns}
    return Job.objects.create(owner=owner, key=key, **given)


def confirm(client: Client, url: str, **fields: Any) -> Any:
    """Open the page that asks, and send its form as a browser would."""
    asked = client.get(url, follow=True)
    assert asked.status_code == 200, asked.status_code
    if asked.redirect_chain:
        url, _status = asked.redirect_chain[-1]
    return client.post(url, {**hidden(asked), **fields}, follow=True)


def confirm_bulk(
    client: Client, url: str, verb: str, keys: list[Any], *, across: bool = False, **fields: Any
) -> Any:
    """Choose a bulk action in a list, and send the form of the page that asks."""
    chosen = {"action": verb, "_selected_action": keys, "select_across": "1" if across else "0"}
    asked = client.post(url, {**chosen, "index": "0"}, follow=True)
    if "form" not in asked.context:
        return asked
    return client.post(url, {**hidden(asked), **fields}, follow=True)


def hidden(asked: Any) -> dict[str, Any]:
    """Return the hidden fields of a page that asks."""
    form = asked.context["form"]
    found: dict[str, Any] = {one.html_name: one.value() or "" for one in form.hidden_fields()}
    given = asked.context.get("hidden", ())
    for name, value in given.items() if isinstance(given, dict) else given:
        found.setdefault(name, []).append(value)
    return found


def visible(asked: Any) -> dict[str, Any]:
    """Return the values of the fields of a form that are seen."""
    fields = {field.html_name: field.value() for field in asked.context["form"].visible_fields()}
    return {
        name: value for name, value in fields.items() if isinstance(value, str | int | float | list)
    }


def said(response: Any) -> list[str]:
    """Return the messages on a page."""
    return [str(message) for message in response.context["messages"]]
