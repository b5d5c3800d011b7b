"""Mail subscriptions over the API: made, changed by version, switched off and on, deleted."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import Owner
from tests.jobs.api.conftest import ROOT, Caller, post
from tests.jobs.api.job_scenes import change

MAILS = {"name": "ops", "addresses": ["ops@acme.example"], "events": ["job.failing"]}


@pytest.fixture
def client(caller: Caller, acme: Owner) -> Client:
    return caller(acme)


@pytest.fixture
def path(client: Client) -> str:
    made = post(client, "/mail-subscriptions", MAILS)
    assert made.status_code == 201, made.content
    found = f"/mail-subscriptions/{made.json()['id']}"
    assert made["Location"].endswith(found)
    assert client.get(f"{ROOT}{found}")["ETag"] == made["ETag"]
    return found


def read(client: Client, path: str) -> Any:
    return client.get(f"{ROOT}{path}")


def test_a_subscription_is_shown_as_it_was_made(client: Client, path: str) -> None:
    """With the defaults of what was not given."""
    shown = read(client, path).json()
    assert {name: shown[name] for name in MAILS} == MAILS
    assert (shown["owner"], shown["language"], shown["is_active"]) == ("acme", "en", True)
    assert (shown["tasks"], shown["states"], shown["job"]) == ([], [], None)
    [listed] = client.get(f"{ROOT}/mail-subscriptions").json()["items"]
    assert listed == shown


def test_bad_fields_are_named(client: Client, path: str) -> None:
    """Addresses, languages and events are checked; nothing changes."""
    for given, field in (
        ({"addresses": ["nobody"]}, "addresses"),
        ({"language": "xx"}, "language"),
    ):
        answer = change(client, "patch", path, given, "*")
        assert answer.status_code == 422, answer.content
        assert field in answer.content.decode()
    assert read(client, path).json()["addresses"] == MAILS["addresses"]
