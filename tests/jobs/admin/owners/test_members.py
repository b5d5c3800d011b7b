"""The members on an owner's page in the admin."""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import Membership, Owner
from tests.jobs.admin.owners.test_limits import MEMBERS

Person = Callable[..., Client]
ALLOWED = ("view_owner", "change_owner", "view_membership", "add_membership")


def test_only_users_that_may_be_seen_are_added(
    person: Person, as_root: Client, acme: Owner, northwind: Owner, stranger: Owner
) -> None:
    """The number of another user is refused as one that does not exist is."""
    client = person("boss", *ALLOWED, acme="admin", northwind="admin")
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
