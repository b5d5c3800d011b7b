"""The page of an owner in the admin: its limits in the fair queues, and its members."""

from collections.abc import Callable
from typing import Any

import redis
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import Membership, Owner
from jobs.runs import dispatch
from tests.fleet.fair_queues import Queue

MEMBERS = {
    f"memberships-{name}": 0
    for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS", "MAX_NUM_FORMS")
}
"""What a browser sends of an owner's members: none."""


def test_limits_are_those_of_the_page_and_a_deleted_owner_has_none(
    as_root: Client,
    acme: Owner,
    northwind: Owner,
    broker: redis.Redis,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    """Deleted on its page, or in the list."""
    queue = Queue(broker)
    queue.put("acme", "a1")
    queue.put("northwind", "n1")
    with django_capture_on_commit_callbacks(execute=True):
        for owner in (acme, northwind):
            url = reverse("admin:jobs_owner_change", args=[owner.pk])
            given = {"zone": "UTC", "weight": 3, "max_running": 1, "wait_objective_percent": 95}
            assert as_root.post(url, {**given, **MEMBERS}).status_code == 302
    found = dispatch.owners().snapshot(timeout=5).owners
    assert {(one.weight, one.max_running) for one in found.values()} == {(3, 1)}
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


def test_only_users_that_may_be_seen_are_added(
    person: Callable[..., Client], as_root: Client, acme: Owner, northwind: Owner, stranger: Owner
) -> None:
    """The number of another user is refused as one that does not exist is."""
    allowed = ("view_owner", "change_owner", "view_membership", "add_membership")
    client = person("boss", *allowed, acme="admin", northwind="admin")
    person("colleague", northwind="viewer")
    person("outsider", stranger="viewer")
    numbers = dict(User.objects.values_list("username", "pk"))
    url = reverse("admin:jobs_owner_change", args=[acme.pk])

    def add(client: Client, number: int) -> str:
        row = {"memberships-0-user": number, "memberships-0-role": "viewer"}
        fields = {"zone": "UTC", "weight": 3, "wait_objective_percent": 95}
        answer = client.post(url, {**fields, **MEMBERS, "memberships-TOTAL_FORMS": 1, **row})
        return "" if answer.status_code == 302 else str(answer.context["errors"])

    refused = add(client, 99_999_999)
    assert refused
    assert add(client, numbers["outsider"]) == refused
    assert add(client, numbers["colleague"]) == ""
    names = Membership.objects.filter(owner=acme).values_list("user__username", flat=True)
    assert set(names) == {"boss", "colleague"}
    assert add(as_root, numbers["outsider"]) == ""
