"""What people do to calendars in a scene: each in a transaction, with the moments around its end.

Runs in whatever process the scene has for it. Facts go in and come back as JSON.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.db import connection, transaction

Facts = dict[str, Any]


def _noted(edit: Callable[..., None]) -> Callable[..., Facts]:
    """Make an edit one transaction that returns the moments around it, by PostgreSQL's clock."""

    @wraps(edit)
    def act(**arguments: Any) -> Facts:
        facts: Facts = {}
        with transaction.atomic():
            # The first to be called: what the project does after a commit comes later.
            transaction.on_commit(lambda: facts.update(after=_now()))
            facts["before"] = _now()
            edit(**arguments)
        return facts

    return act


@_noted
def agree(
    *, owner: str, starts: list[str], seconds: int, zone: str, weight: int = 1, **fields: Any
) -> None:
    """Have an owner with a calendar of one approved window, which opens at these times."""
    from jobs.calendars import approvals, changes
    from jobs.calendars.windows import request_window
    from jobs.models import Calendar, Owner

    customer, _ = Owner.objects.update_or_create(slug=owner, defaults={"weight": weight})
    calendar = Calendar.objects.create(owner=customer, name="agreed", **fields)
    changes.attach(calendar, customer)
    with changes.changing(calendar):
        made = request_window(calendar, **_times(starts, seconds), zone=zone)
        approvals.approve(made, actor=_somebody())


@_noted
def move(*, owner: str, starts: list[str], seconds: int) -> None:
    """Have the window open at other times, for this long, approved."""
    from jobs.calendars import approvals, changes
    from jobs.calendars.windows import change_window

    window = _of(owner)
    with changes.changing(window.calendar):
        approvals.approve(change_window(window, **_times(starts, seconds)), actor=_somebody())


@_noted
def freeze(*, owner: str, starts: str, seconds: int, zone: str) -> None:
    """Have nothing start in that time."""
    from jobs.calendars.windows import request_window

    times = _times([starts], seconds)
    request_window(_of(owner).calendar, effect="freeze", zone=zone, **times)


@_noted
def thaw(*, owner: str) -> None:
    """Take the freezes back."""
    from jobs.calendars import changes
    from jobs.calendars.windows import delete_window
    from jobs.models import Window

    calendar = _of(owner).calendar
    with changes.changing(calendar):
        for froze in Window.objects.filter(calendar=calendar, effect="freeze"):
            delete_window(froze)


@_noted
def revoke(*, owner: str) -> None:
    """Take the approval of the window back."""
    from jobs.calendars import approvals

    approvals.revoke(_of(owner), actor=_somebody())


@_noted
def approve(*, owner: str) -> None:
    """Approve the window again."""
    from jobs.calendars import approvals

    approvals.approve(_of(owner), actor=_somebody())


def _of(owner: str) -> Any:
    from jobs.models import Window

    return Window.objects.select_related("calendar").get(
        calendar__owner__slug=owner, effect="window"
    )


def _times(starts: list[str], seconds: int) -> dict[str, Any]:
    first, *added = map(datetime.fromisoformat, starts)
    return {"starts": first, "added": added, "duration": timedelta(seconds=seconds)}


def _somebody() -> Any:
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    return users.update_or_create(username="somebody who may", defaults={"is_superuser": True})[0]


def _now() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment.isoformat()


ACTS: dict[str, Callable[..., Facts]] = {
    act.__name__: act for act in (agree, move, freeze, thaw, revoke, approve)
}
