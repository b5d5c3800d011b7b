"""What people do to calendars in a scene: each in a transaction, with the moments around its end.

Runs in whatever process the scene has for it. Facts go in and come back as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

Facts = dict[str, Any]


def agree(
    *, owner: str, starts: list[str], seconds: int, zone: str, weight: int = 1, **fields: Any
) -> Facts:
    """Have an owner with a calendar of one approved window, which opens at these times."""
    from jobs.calendars import approvals, changes
    from jobs.calendars.windows import request_window
    from jobs.models import Calendar, Owner

    with _noted() as facts:
        customer, _ = Owner.objects.update_or_create(slug=owner, defaults={"weight": weight})
        calendar = Calendar.objects.create(owner=customer, name="agreed", **fields)
        changes.attach(calendar, customer)
        with changes.changing(calendar):
            made = request_window(calendar, **_times(starts, seconds), zone=zone)
            approvals.approve(made, actor=_somebody())
    return facts


def move(*, owner: str, starts: list[str], seconds: int) -> Facts:
    """Have the window open at other times, for this long, approved."""
    from jobs.calendars import approvals, changes
    from jobs.calendars.windows import change_window

    with _noted() as facts:
        window = _of(owner)
        with changes.changing(window.calendar):
            approvals.approve(change_window(window, **_times(starts, seconds)), actor=_somebody())
    return facts


def freeze(*, owner: str, starts: str, seconds: int, zone: str) -> Facts:
    """Have nothing start in that time."""
    from jobs.calendars.windows import request_window

    with _noted() as facts:
        times = _times([starts], seconds)
        request_window(_of(owner).calendar, effect="freeze", zone=zone, **times)
    return facts


def thaw(*, owner: str) -> Facts:
    """Take the freezes back."""
    from jobs.calendars import changes
    from jobs.calendars.windows import remove_window
    from jobs.models import Window

    with _noted() as facts:
        calendar = _of(owner).calendar
        with changes.changing(calendar):
            for froze in Window.objects.filter(calendar=calendar, effect="freeze"):
                remove_window(froze)
    return facts


def revoke(*, owner: str) -> Facts:
    """Take the approval of the window back."""
    from jobs.calendars import approvals

    with _noted() as facts:
        approvals.revoke(_of(owner), actor=_somebody())
    return facts


def approve(*, owner: str) -> Facts:
    """Approve the window again."""
    from jobs.calendars import approvals

    with _noted() as facts:
        approvals.approve(_of(owner), actor=_somebody())
    return facts


@contextmanager
def _noted() -> Iterator[Facts]:
    """Commit the block; the facts have the moments around it, by PostgreSQL's clock."""
    facts: Facts = {}
    with transaction.atomic():
        # The first to be called: what the project does after a commit comes later.
        transaction.on_commit(lambda: facts.update(after=_now()))
        facts["before"] = _now()
        yield facts


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
