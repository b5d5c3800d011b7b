"""The demo's customers in the database: their devices as targets, and their calendars."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser

from config.demo.agreed_hours import (
    AGREED,
    CUT_OFF_SECONDS,
    FROZEN,
    OPEN_SECONDS,
    UNAPPROVED,
    Customer,
)
from jobs.calendars import changes
from jobs.calendars.approvals import approve
from jobs.calendars.windows import delete_window, request_window
from jobs.models import Calendar, Owner, Target, TargetGroup

FREEZE: Final = timedelta(days=2)


def make_calendars(customers: Sequence[Customer], *, approver: str) -> None:
    """Make a target group of each customer's devices, with a calendar of the customer's hours.

    The user `approver` approves them.
    """
    user = get_user_model().objects.get(username=approver)
    for customer in customers:
        owner = Owner.objects.get(slug=customer.name)
        group = _group_of(owner, customer)
        calendar, _ = Calendar.objects.update_or_create(
            owner=owner, name="agreed hours", defaults={"cut_off_seconds": CUT_OFF_SECONDS}
        )
        changes.attach(calendar, group)
        with changes.changing(calendar):
            _keep_hours(calendar, customer, user)


def _group_of(owner: Owner, customer: Customer) -> TargetGroup:
    Target.objects.bulk_create(
        [Target(owner=owner, name=name) for name in customer.devices], ignore_conflicts=True
    )
    group, _ = TargetGroup.objects.get_or_create(owner=owner, name="firewalls")
    with changes.changing_group(group):
        group.targets.set(Target.objects.filter(owner=owner, name__in=customer.devices))
    return group


def _keep_hours(calendar: Calendar, customer: Customer, approver: AbstractBaseUser) -> None:
    """Replace the windows of an earlier demo by the customer's."""
    for old in calendar.windows.all():
        delete_window(old, reason="of the demo before")
    first, *added = map(_shown, customer.opens)
    window = request_window(
        calendar,
        starts=first,
        added=added,
        duration=timedelta(seconds=OPEN_SECONDS),
        zone="UTC",
        reason="firmware upgrades",
    )
    if customer.status != UNAPPROVED:
        approve(window, actor=approver)
    if customer.status == FROZEN:
        request_window(
            calendar,
            effect="freeze",
            starts=first - timedelta(days=1),
            duration=FREEZE,
            zone="UTC",
            reason="year-end closing",
        )


def _shown(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC).replace(tzinfo=None)


def names_of(customers: Sequence[Customer], status: str = AGREED) -> list[str]:
    """Return the names of the customers with this status."""
    return [one.name for one in customers if one.status == status]
