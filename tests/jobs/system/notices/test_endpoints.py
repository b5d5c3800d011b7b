"""jobs/system/notices/endpoints.py: which addresses a webhook may have, and who changes what."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from jobs.core.errors import AccessDenied, OptionError
from jobs.models import Membership, Owner, Role, WebhookEndpoint
from jobs.system.notices.endpoints import change_endpoint
from tests.jobs.system.notices.scenes import endpoint

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "0x7f.1"]
)
def test_an_inner_address_is_refused_when_it_is_given(
    acme: Owner, settings: Any, host: str
) -> None:
    """At the field `url`, by the rule of the HTTP task, also in a change; unless it is listed."""
    there = endpoint(acme, "https://ci.example/hook")
    url = f"https://{host}/hook"
    for act in (lambda: endpoint(acme, url), lambda: change_endpoint(there, {"url": url})):
        with pytest.raises(OptionError) as refused:
            act()
        assert refused.value.option == "url"
        assert "the host" in refused.value.problem
    assert [one.url for one in WebhookEndpoint.objects.all()] == ["https://ci.example/hook"]
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "HTTP_ALLOWED_HOSTS": (f"acme@{host}",)}
    assert endpoint(acme, url).url == url


def test_less_and_no_farther_needs_no_right_to_details(acme: Owner) -> None:
    """An admin turns a webhook with details off, or renames it; its maker stays.

    What sends more, or elsewhere, needs the right to see the details.
    """
    url = "https://ci.example/hook"
    ann, bob = (User.objects.create_user(name) for name in ("ann", "bob"))
    codes = ["view_arguments", "view_run"]
    ann.user_permissions.set(Permission.objects.filter(codename__in=codes))
    for user in (ann, bob):
        Membership.objects.create(owner=acme, user=user, role=Role.ADMIN)
    made = endpoint(acme, url, has_details=True, actor=User.objects.get(pk=ann.pk))
    bob = User.objects.get(pk=bob.pk)
    assert change_endpoint(made, {"name": "old ci"}, actor=bob) == ["name"]
    assert change_endpoint(made, {"is_active": False}, actor=bob) == ["is_active"]
    assert made.created_by == ann and not made.is_active
    more: list[dict[str, Any]] = [
        {"is_active": True},
        {"url": f"{url}/elsewhere"},
        {"events": ["run.ended", "job.failing"]},
        {"name": "ci", "url": f"{url}/elsewhere"},
    ]
    for change in more:
        with pytest.raises(AccessDenied):
            change_endpoint(made, change, actor=bob)
    assert change_endpoint(made, {"has_details": False}, actor=bob) == ["has_details"]
