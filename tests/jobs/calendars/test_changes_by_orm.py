"""jobs/migrations/sql/0005_calendar_changes.sql: calendars that are changed without their verbs,
by the ORM or SQL.

Whatever deletes or changes a calendar, the next promotion judges again what waited for it, and
nothing starts by what the calendar was before.
"""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from fleet import Refusal
from jobs import submit
from jobs.calendars import changes
from jobs.calendars.windows import delete_window
from jobs.core import sql
from jobs.models import Attachment, Calendar, Opening, Owner, Target, TargetGroup, Window
from jobs.runs import closing
from jobs.system import promotion
from tests.jobs.scenes import ask, begun, hinted, living_worker, states
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.usefixtures("committed")


def _raw(calendar: Calendar) -> None:
    sql.query("DELETE FROM jobs_attachment WHERE calendar_id = %s", [calendar.pk])


RELEASES: dict[str, Callable[[Calendar], object]] = {
    "the calendar": lambda calendar: calendar.delete(),
    "a queryset of calendars": lambda calendar: Calendar.objects.filter(pk=calendar.pk).delete(),
    "its attachments": lambda calendar: calendar.attachments.all().delete(),
    "its freeze": lambda calendar: calendar.windows.get(effect="freeze").delete(),
    "a queryset of freezes": lambda calendar: calendar.windows.filter(effect="freeze").delete(),
    "its attachments by SQL": _raw,
    "its freeze by its verb": lambda calendar: delete_window(calendar.windows.get(effect="freeze")),
    "its attachment by its verb": lambda calendar: changes.detach(calendar.attachments.get()),
    "the calendar by its verb": changes.delete,
}


@pytest.mark.parametrize("what", RELEASES)
def test_what_is_deleted_releases_what_waited(acme: Owner, what: str) -> None:
    """With a verb or without: the next promotion queues the runs that nothing keeps any more."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=-60, seconds=3_600)
    freeze(calendar)
    run = submit("tests.add", 1, 2, owner=acme)
    promotion.promote()
    assert states(run) == ["held"]
    RELEASES[what](calendar)
    promotion.promote()
    assert states(run) == ["held", "queued"] and hinted() == [run.id]
    assert not isinstance(ask(living_worker(), [run])[0], Refusal)


def frozen_group(owner: Owner) -> tuple[TargetGroup, Target]:
    """Make a group of one target, and a freeze that applies to it."""
    calendar = Calendar.objects.create(owner=owner, name="nights", needs_approval=False)
    group = TargetGroup.objects.create(owner=owner, name="routers")
    target = Target.objects.create(owner=owner, name="r1")
    group.targets.add(target)
    freeze(calendar)
    changes.attach(calendar, group)
    return group, target


def test_what_a_calendar_applied_to_is_deleted_with_its_attachment(acme: Owner) -> None:
    """A cascade that takes an attachment along counts as well: here of a group of targets."""
    group, _ = frozen_group(acme)
    run = submit("tests.add", 1, 2, owner=acme, target="r1")
    assert states(run) == ["held"]
    group.delete()
    promotion.promote()
    assert states(run) == ["held", "queued"]


def test_a_target_that_leaves_its_group_is_free_of_the_groups_calendar(acme: Owner) -> None:
    """Also when the ORM, and no verb, takes it out; and it waits again when it is put back."""
    group, target = frozen_group(acme)
    run = submit("tests.add", 1, 2, owner=acme, target="r1")
    group.targets.remove(target)
    promotion.promote()
    assert states(run) == ["held", "queued"]
    group.targets.add(target)
    promotion.promote()
    assert states(run) == ["held", "queued", "held"]


def _add_freeze(calendar: Calendar) -> None:
    Window.objects.create(
        calendar=calendar, effect="freeze", starts="2020-01-01T00:00:00", duration_seconds=86_400,
        rule="FREQ=DAILY",
    )  # fmt: skip


CLOSINGS: dict[str, Callable[[Calendar], object]] = {
    "a new freeze": _add_freeze,
    "a deleted window": lambda calendar: calendar.windows.order_by("pk").first().delete(),  # type: ignore[union-attr]
    "a window that ended": lambda calendar: calendar.windows.order_by("pk").update(
        starts="2020-01-01T00:00:00"
    ),
    "an approval that is needed": lambda calendar: Calendar.objects.filter(pk=calendar.pk).update(
        needs_approval=True
    ),
}


@pytest.mark.parametrize("what", CLOSINGS)
def test_what_closes_a_calendar_without_a_verb_holds_at_once(acme: Owner, what: str) -> None:
    """Admission refuses from the commit on, before any promotion; the next one holds the run."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=-60, seconds=3_600)
    window(calendar, opens_in=7_200, seconds=3_600)
    run, waiting = (submit("tests.add", n, 2, owner=acme) for n in (1, 2))
    CLOSINGS[what](calendar)
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    promotion.promote()
    assert states(run) == ["queued", "held"]
    assert states(waiting) == ["queued", "held"]


def test_a_calendar_that_was_attached_without_a_verb_applies(acme: Owner) -> None:
    """Its openings are made by the next promotion; until then nothing starts."""
    calendar = Calendar.objects.create(owner=acme, name="nights", needs_approval=False)
    run = submit("tests.add", 1, 2, owner=acme)
    Attachment.objects.create(calendar=calendar, owner=acme)
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    promotion.promote()
    assert Opening.objects.filter(calendar=calendar).exists()
    assert states(run) == ["queued", "held", "queued"]


def test_an_older_object_that_is_saved_does_not_undo_the_note(acme: Owner) -> None:
    """save() writes all fields as they were read; the calendar is made anew all the same."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=-60, seconds=3_600)
    before = Calendar.objects.get(pk=calendar.pk)
    _add_freeze(calendar)
    before.save()
    promotion.promote()
    assert not Opening.objects.filter(calendar=calendar).exists()
    Window.objects.filter(effect="freeze").delete()
    before.save()
    promotion.promote()
    assert Opening.objects.filter(calendar=calendar).exists()


def test_a_user_who_is_deleted_changes_no_calendar(acme: Owner) -> None:
    """Who asked for a window says nothing of when it is open: its openings stay."""
    calendar = calendar_of(acme)
    user = User.objects.create_user("ann")
    window(calendar, opens_in=-60, seconds=3_600, requested_by_id=user.pk)
    before = list(Opening.objects.filter(calendar=calendar).values_list("opens_at", "closes_at"))
    user.delete()
    assert before
    assert before == list(
        Opening.objects.filter(calendar=calendar).values_list("opens_at", "closes_at")
    )


def test_what_runs_is_not_stopped_while_openings_are_made_anew(acme: Owner) -> None:
    """A stale calendar has no openings, and would seem closed to a look in between."""
    calendar = calendar_of(acme, end="hard")
    window(calendar, opens_in=-60, seconds=3_600)
    run, _ = begun(acme)
    calendar.windows.update(reason="patches", valid_until=None)
    closing.close_runs(acme.pk)
    promotion.promote()
    assert states(run)[-1] == "running"
