"""Mail subscriptions over the API: made, changed by version, switched off and on, deleted."""

from typing import Any

import pytest
from django.test import Client

from jobs.core import barrier
from jobs.models import AuditEntry, MailSubscription, Owner
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.api.job_scenes import UNREAD, change

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


def test_each_change_makes_a_version(client: Client, path: str) -> None:
    """428 without a version, 412 with another one."""
    before = read(client, path)["ETag"]
    given = {"addresses": ["dev@acme.example"], "language": "de"}
    problem(change(client, "patch", path, given, ""), 428, "precondition_required")
    problem(change(client, "patch", path, given, UNREAD), 412, "precondition_failed")
    changed = change(client, "patch", path, given, before)
    assert changed.status_code == 200, changed.content
    assert changed["ETag"] == read(client, path)["ETag"] != before
    assert read(client, path).json()["addresses"] == ["dev@acme.example"]


def test_one_is_switched_off_with_a_reason_and_on_again(client: Client, path: str) -> None:
    """The reason is shown while it is off, and stays in the audit."""
    off = post(client, f"{path}/disable", {"reason": "holidays"}).json()
    assert (off["is_active"], off["disabled_reason"]) == (False, "holidays")
    assert off["disabled_at"] is not None
    on = post(client, f"{path}/enable", {}).json()
    assert (on["is_active"], on["disabled_reason"], on["disabled_at"]) == (True, "", None)
    barrier.lower()
    acts = AuditEntry.objects.filter(object_type="mailsubscription").order_by("pk")
    assert list(acts.values_list("action", "reason")) == [
        ("create mail subscription", ""),
        ("disable mail subscription", "holidays"),
        ("enable mail subscription", ""),
    ]


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


def test_a_deletion_names_the_version(client: Client, path: str) -> None:
    """428 without one, 412 with another one."""
    problem(change(client, "delete", path, None, ""), 428, "precondition_required")
    problem(change(client, "delete", path, None, UNREAD), 412, "precondition_failed")
    assert change(client, "delete", path, None, read(client, path)["ETag"]).status_code == 204
    assert read(client, path).status_code == 404
    barrier.lower()
    assert not MailSubscription.objects.exists()
