"""Webhooks over the API: a change names the version that was read, and deliveries make none."""

from typing import Any

import pytest
from django.test import Client

from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Owner, WebhookEndpoint
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.api.job_scenes import UNREAD, change

HOOK = {"name": "ci", "url": "https://ci.example/", "events": ["run.ended"]}
CHANGES: list[dict[str, Any]] = [
    {"name": "other"},
    {"url": "https://other.example/"},
    {"events": ["job.late"]},
    {"tasks": ["net.*"]},
    {"states": ["failed"]},
    {"has_details": True},
    {"is_active": False},
]


@pytest.fixture
def client(caller: Caller, acme: Owner) -> Client:
    return caller(acme)


@pytest.fixture
def path(client: Client) -> str:
    made = post(client, "/webhooks", HOOK)
    assert made.status_code == 201, made.content
    found = f"/webhooks/{made.json()['id']}"
    assert client.get(f"{ROOT}{found}")["ETag"] == made["ETag"]
    return found


def etag(client: Client, path: str) -> str:
    found: str = client.get(f"{ROOT}{path}")["ETag"]
    return found


@pytest.mark.parametrize("given", CHANGES, ids=lambda one: next(iter(one)))
def test_each_change_makes_a_version(client: Client, path: str, given: dict[str, Any]) -> None:
    """428 without a version, 412 with another one; the answer has the new one."""
    before = etag(client, path)
    problem(change(client, "patch", path, given, ""), 428, "precondition_required")
    problem(change(client, "patch", path, given, UNREAD), 412, "precondition_failed")
    assert etag(client, path) == before
    changed = change(client, "patch", path, given, before)
    assert changed.status_code == 200, changed.content
    assert changed["ETag"] == etag(client, path) != before
    problem(change(client, "patch", path, given, before), 412, "precondition_failed")


def test_a_new_key_makes_a_version(client: Client, path: str) -> None:
    """`rotate` compares a version only if it is sent."""
    before = etag(client, path)
    stale = post(client, f"{path}/rotate", {}, **{"If-Match": UNREAD})
    problem(stale, 412, "precondition_failed")
    rotated = post(client, f"{path}/rotate", {})
    assert rotated.status_code == 200, rotated.content
    assert rotated["ETag"] == etag(client, path) != before


def test_a_deletion_names_the_version(client: Client, path: str) -> None:
    """428 without one, 412 with another one."""
    problem(change(client, "delete", path, None, ""), 428, "precondition_required")
    problem(change(client, "delete", path, None, UNREAD), 412, "precondition_failed")
    assert change(client, "delete", path, None, etag(client, path)).status_code == 204
    assert client.get(f"{ROOT}{path}").status_code == 404


def test_deliveries_make_no_version(client: Client, path: str) -> None:
    """What they write moves by itself; a webhook that they have disabled is another version."""
    before = etag(client, path)
    barrier.lower()
    WebhookEndpoint.objects.update(failure_count=3, retry_at=now(), last_delivered_at=now())
    assert etag(client, path) == before
    again = client.get(f"{ROOT}{path}", headers={"If-None-Match": before})
    assert (again.status_code, again.content) == (304, b"")
    barrier.lower()
    WebhookEndpoint.objects.update(is_active=False, disabled_at=now(), disabled_reason="410")
    assert etag(client, path) != before
