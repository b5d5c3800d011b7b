"""What people do to calendars in a scene: each in a transaction, with the moments around its end.

Runs in whatever process the scene has for it. Facts go in and come back as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, transaction

Facts = dict[str, Any]


def agree(
    *, owner: str, starts: list[str], seconds: int, zone: str, weight: int = 1, **fields: Any
) -> Facts:
    """Have an owner with a calendar of one approved window, which opens at these times."""
    from jobs import calendars
    from jobs.models import Calendar, Owner

    with _noted() as facts:
        customer, _ = Owner.objects.update_or_create(slug=owner, defaults={"weight": weight})
        calendar = Calendar.objects.create(owner=customer, name="agreed", **fields)
        calendars.attach(calendar, customer)
        with calendars.changing(calendar):
            made = _window(calendar, starts=starts, seconds=seconds, zone=zone)
            _decide(made, "approved")
    return facts


def move(*, owner: str, starts: list[str], seconds: int) -> Facts:
    """Have the window open at other times, for so long; nobody needs to approve it anew."""
    from jobs import calendars
    from jobs.models import Window

    with _noted() as facts:
        window = _of(owner)
        with calendars.changing(window.calendar):
            Window.objects.filter(pk=window.pk).update(
                starts=starts[0], added=starts[1:], duration_seconds=seconds
            )
    return facts


def freeze(*, owner: str, starts: str, seconds: int, zone: str) -> Facts:
    """Have nothing start in that time."""
    from jobs import calendars

    with _noted() as facts:
        calendar = _of(owner).calendar
        with calendars.changing(calendar):
            _window(calendar, starts=[starts], seconds=seconds, zone=zone, effect="freeze")
    return facts


def thaw(*, owner: str) -> Facts:
    """Take the freezes back."""
    from jobs import calendars
    from jobs.models import Window

    with _noted() as facts:
        calendar = _of(owner).calendar
        with calendars.changing(calendar):
            Window.objects.filter(calendar=calendar, effect="freeze").delete()
    return facts


def revoke(*, owner: str) -> Facts:
    """Take the approval of the window back."""
    return _decided(owner, "revoked")


def approve(*, owner: str) -> Facts:
    """Approve the window again."""
    return _decided(owner, "approved")


def _decided(owner: str, decision: str) -> Facts:
    from jobs import calendars

    with _noted() as facts:
        window = _of(owner)
        with calendars.changing(window.calendar):
            _decide(window, decision)
    return facts


@contextmanager
def _noted() -> Iterator[Facts]:
    """Commit the block; the facts say between which moments, by PostgreSQL's clock."""
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


def _window(
    calendar: Any, *, starts: list[str], seconds: int, zone: str, effect: str = "window"
) -> Any:
    from jobs.models import Window

    return Window.objects.create(
        calendar=calendar,
        effect=effect,
        starts=starts[0],
        added=starts[1:],
        duration_seconds=seconds,
        zone=zone,
    )


def _decide(window: Any, decision: str) -> None:
    from jobs.models import WindowDecision

    WindowDecision.objects.create(
        window=window, revision=window.revision, decision=decision, actor_name="a customer"
    )


def _now() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment.isoformat()


ACTS: dict[str, Callable[..., Facts]] = {
    act.__name__: act for act in (agree, move, freeze, thaw, revoke, approve)
}
