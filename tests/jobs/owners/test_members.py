"""jobs/owners/members.py: an owner does not lose its last admin by a race."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model

from jobs.core.errors import LastAdmin
from jobs.models import Membership, Owner, Role
from jobs.owners.members import remove_member


def _member(owner: Owner, name: str, role: Role) -> Membership:
    user: Any = get_user_model().objects.create(username=name)
    return Membership.objects.create(owner=owner, user=user, role=role)


def test_a_member_that_became_the_last_admin_is_not_removed(db: None, acme: Owner) -> None:
    """The role that counts is the one under the lock, not the one that the caller has read."""
    ada, eve = _member(acme, "ada", Role.ADMIN), _member(acme, "eve", Role.OPERATOR)
    Membership.objects.filter(pk=eve.pk).update(role=Role.ADMIN)
    Membership.objects.filter(pk=ada.pk).update(role=Role.VIEWER)
    with pytest.raises(LastAdmin):
        remove_member(eve, actor=ada.user)
    assert Membership.objects.filter(pk=eve.pk).exists()
