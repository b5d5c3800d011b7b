"""The page of an owner: what it may have acts on what waits, once it is saved."""

from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.test import Client
from django.urls import reverse

from fleet import OwnerSnapshot
from jobs.models import Owner
from jobs.runs import dispatch
from tests.fleet.fair_queues import Queue

Committing = Callable[..., Any]

MEMBERS = {
    f"memberships-{name}": value
    for name, value in {
        "TOTAL_FORMS": 0,
        "INITIAL_FORMS": 0,
        "MIN_NUM_FORMS": 0,
        "MAX_NUM_FORMS": 0,
    }.items()
}


@pytest.fixture
def queue(broker: redis.Redis) -> Queue:
    queue = Queue(broker)
    queue.put("acme", "a1", "a2", "a3")
    return queue


def seen() -> OwnerSnapshot:
    return dispatch.owners().snapshot("acme", timeout=5).owners["acme"]


def save(client: Client, owner: Owner, **fields: Any) -> None:
    url = reverse("admin:jobs_owner_change", args=[owner.pk])
    given = {"zone": "UTC", "weight": 3, "wait_objective_percent": 95, **fields}
    answer = client.post(url, {**given, **MEMBERS})
    assert answer.status_code == 302, answer.context["errors"]


def test_a_deleted_owner_leaves_no_limits(
    as_root: Client,
    acme: Owner,
    northwind: Owner,
    queue: Queue,
    django_capture_on_commit_callbacks: Committing,
) -> None:
    """From its page, or from the list."""
    queue.put("northwind", "n1")
    for owner in (acme, northwind):
        with django_capture_on_commit_callbacks(execute=True):
            save(as_root, owner, weight=3, max_running=1)
    with django_capture_on_commit_callbacks(execute=True):
        as_root.post(reverse("admin:jobs_owner_delete", args=[acme.pk]), {"post": "yes"})
        chosen = {"action": "delete_selected", "_selected_action": [northwind.pk], "post": "yes"}
        as_root.post(reverse("admin:jobs_owner_changelist"), chosen)
    assert not Owner.objects.exists()
    found = dispatch.owners().snapshot(timeout=5).owners
    assert {name: (one.weight, one.max_running) for name, one in found.items()} == {
        "acme": (1, None),
        "northwind": (1, None),
    }
