"""The page of API tokens: a secret is shown once, to a member who may make it."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from jobs.core import barrier
from jobs.models import ApiToken, AuditEntry, Owner
from jobs.owners.tokens import use_token

ADD = "/admin/jobs/apitoken/add/"
PERMISSIONS = ("view_apitoken", "add_apitoken", "change_apitoken")


def given(owner: Owner | None) -> dict[str, object]:
    key = owner.pk if owner else ""
    return {
        "owner": key,
        "name": "robot",
        "scopes": ["read"],
        "expires_at_0": "",
        "expires_at_1": "",
    }


def test_the_secret_is_shown_once(person: Callable[..., Client], acme: Owner) -> None:
    """On the page that answers the form, which no cache stores; and nowhere later."""
    client = person("ada", *PERMISSIONS, acme="admin")
    answer = client.post(ADD, given(acme))
    secret = answer.context["secret"]
    assert "no-store" in answer["Cache-Control"] and secret in answer.content.decode()
    token = ApiToken.objects.get()
    assert use_token(secret) == token
    barrier.lower()
    assert token.created_by.username == "ada"
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.actor_name) == ("create token", "ada")
    page = client.get(reverse("admin:jobs_apitoken_change", args=[token.pk]))
    assert page.status_code == 200 and secret not in page.content.decode()


def test_only_superusers_make_a_token_for_all_owners(
    person: Callable[..., Client], as_root: Client, acme: Owner, stranger: Owner
) -> None:
    """A member makes one for an owner of which they are an admin."""
    client = person("ada", *PERMISSIONS, acme="admin")
    for owner in (None, stranger):
        assert client.post(ADD, given(owner)).status_code == 200
        assert not ApiToken.objects.exists()
    assert person("bob", *PERMISSIONS, acme="operator").post(ADD, given(acme)).status_code == 403
    as_root.post(ADD, given(None))
    assert ApiToken.objects.get().owner is None
