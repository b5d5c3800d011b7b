"""jobs/system/notices/endpoints.py: who may change what of a webhook."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from pytest_django import Settings

from jobs.core.errors import AccessDenied
from jobs.models import Membership, Owner, Role
from jobs.system.notices.endpoints import change_endpoint, make_endpoint
from tests.jobs.system.notices.scenes import allow
from tests.receivers import Receiver

pytestmark = pytest.mark.usefixtures("committed")


def test_less_and_no_farther_needs_no_right_to_details(
    acme: Owner, settings: Settings, ears: Receiver
) -> None:
    """An admin turns a webhook with details off, or renames it; its maker stays.

    What sends more, or elsewhere, needs the right to see the details.
    """
    allow(settings, ears)
    users = get_user_model().objects
    ann, bob = users.create_user("ann"), users.create_user("bob")
    codes = ["view_arguments", "view_run"]
    ann.user_permissions.set(Permission.objects.filter(codename__in=codes))
    for user in (ann, bob):
        Membership.objects.create(owner=acme, user=user, role=Role.ADMIN)
    wanted = {"name": "ci", "url": ears.url, "events": ["run.ended"], "has_details": True}
    made = make_endpoint(wanted, owner=acme, actor=users.get(pk=ann.pk)).endpoint
    bob = users.get(pk=bob.pk)
    assert change_endpoint(made, {"name": "old ci"}, actor=bob) == ["name"]
    assert change_endpoint(made, {"is_active": False}, actor=bob) == ["is_active"]
    assert made.created_by == ann and not made.is_active
    more: list[dict[str, Any]] = [
        {"is_active": True},
        {"url": f"{ears.url}/elsewhere"},
        {"events": ["run.ended", "job.failing"]},
        {"name": "ci", "url": f"{ears.url}/elsewhere"},
    ]
    for change in more:
        with pytest.raises(AccessDenied):
            change_endpoint(made, change, actor=bob)
    assert change_endpoint(made, {"has_details": False}, actor=bob) == ["has_details"]
    # Users stay when a scene's rows are removed.
    made.delete()
    ann.delete()
    bob.delete()
