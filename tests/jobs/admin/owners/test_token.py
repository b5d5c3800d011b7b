"""A token's secret is shown once, to a member who may make it."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from jobs.core import barrier
from jobs.models import ApiToken, AuditEntry, Owner
from jobs.owners.tokens import use_token

PERMISSIONS = ("view_apitoken", "add_apitoken", "change_apitoken")


def test_the_secret_is_shown_once(person: Callable[..., Client], acme: Owner) -> None:
    """On the page that answers the form, and nowhere later."""
    client = person("ada", *PERMISSIONS, acme="admin")
    sent = {"owner": "acme", "name": "robot", "scopes": ["read"]}
    answer = client.post(reverse("jobs:create_token"), sent)
    secret = answer.context["secret"]
    assert secret in answer.content.decode()
    token = ApiToken.objects.get()
    assert use_token(secret) == token
    barrier.lower()
    assert token.created_by.username == "ada"
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.actor_name) == ("create token", "ada")
    page = client.get(reverse("admin:jobs_apitoken_change", args=[token.pk]))
    assert page.status_code == 200 and secret not in page.content.decode()


def test_a_superuser_makes_one_for_all_owners(as_root: Client) -> None:
    sent = {"owner": "", "name": "robot", "scopes": ["read"]}
    as_root.post(reverse("jobs:create_token"), sent)
    assert ApiToken.objects.get().owner is None
