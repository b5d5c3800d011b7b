"""Webhooks over the API: a change names the version that was read, and deliveries make none."""

from typing import Any

import pytest
from django.test import Client

from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Owner, WebhookEndpoint
from tests.jobs.api.conftest import ROOT, Caller, post

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
