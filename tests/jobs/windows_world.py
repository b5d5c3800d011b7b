"""Calendars of the named world, with windows and freezes by seconds from now."""

from datetime import UTC, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User

from jobs.calendars import changes
from jobs.core.sql import now
from jobs.models import Calendar, Membership, Owner, Role, Window


def calendar_of(
    owner: Owner, name: str = "nights", *, needs_approval: bool = False, **fields: Any
) -> Calendar:
    """Make a calendar that applies to all that is an owner's."""
    made = Calendar.objects.create(owner=owner, name=name, needs_approval=needs_approval, **fields)
    changes.attach(made, owner)
    return made


def approver(name: str, *owners: Owner) -> User:
    """Make somebody who may decide on the windows of these owners."""
    made = User.objects.create_user(name)
    made.user_permissions.add(Permission.objects.get(codename="approve_window"))
    for owner in owners:
        Membership.objects.create(owner=owner, user=made, role=Role.APPROVER)
    return made


def window(
    calendar: Calendar, *, opens_in: float, seconds: int, effect: str = "window", **fields: Any
) -> Window:
    """Give a calendar one window or freeze, so many seconds from now."""
    starts = (now() + timedelta(seconds=opens_in)).astimezone(UTC).replace(tzinfo=None)
    with changes.changing(calendar):
        return Window.objects.create(
            calendar=calendar,
            effect=effect,
            starts=starts.isoformat(),
            duration_seconds=seconds,
            **fields,
        )


def freeze(calendar: Calendar, *, opens_in: float = -60, seconds: int = 3_600) -> Window:
    """Close a calendar, as it is by default from a minute ago on."""
    return window(calendar, opens_in=opens_in, seconds=seconds, effect="freeze")
