"""jobs/calendars/ical_import.py: the windows of one source are what its newest file says."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from jobs.calendars import approvals
from jobs.calendars.hours import entry_of
from jobs.calendars.ical_import import ImportReport, import_ical
from jobs.core.errors import IcalError, OptionError
from jobs.core.sql import now
from jobs.models import AuditEntry, Calendar, Opening, Owner, Window
from tests.jobs.calendars.ical.samples import GOOGLE, OUTLOOK, calendar, event
from tests.jobs.windows_world import calendar_of, window

pytestmark = pytest.mark.django_db

NIGHTS = ("DTSTART:20260606T220000", "DURATION:PT8H", "RRULE:FREQ=WEEKLY;BYDAY=SA")
ONCE = ("DTSTART:20260701T220000Z", "DURATION:PT8H")


@pytest.fixture
def hours(acme: Owner) -> Calendar:
    """A calendar of acme's, whose clocks are those of Berlin."""
    Owner.objects.update(zone="Europe/Berlin")
    made = calendar_of(Owner.objects.get())
    made.refresh_from_db()
    return made


def take(hours: Calendar, *events: str, source: str = "a.ics", effect: str = "window") -> list[int]:
    """Import a file of these events; return how many were added, changed, removed, unchanged."""
    return counts(import_ical(hours, calendar(*events), effect=effect, source=source))


def counts(report: ImportReport) -> list[int]:
    return [report.added, report.changed, report.removed, report.unchanged]


def test_a_file_makes_windows_that_are_open(hours: Calendar) -> None:
    """By the clock of the owner, with openings for admission, once, and audited."""
    soon = now() + timedelta(days=1)
    said = take(
        hours, event(f"DTSTART:{soon:%Y%m%dT%H%M%SZ}", "DURATION:PT1H"), event(*NIGHTS, uid="b")
    )
    assert said == [2, 0, 0, 0]
    nights = Window.objects.get(source_uid="b")
    assert (nights.zone, nights.starts, nights.rule) == (
        "Europe/Berlin",
        "2026-06-06T22:00:00",
        "FREQ=WEEKLY;BYDAY=SA",
    )
    assert Opening.objects.filter(opens_at__lte=soon, closes_at__gt=soon).exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.details["added"], entry.details["source"]) == (
        "import windows",
        2,
        "a.ics",
    )
    before = hours.version
    hours.refresh_from_db()
    assert hours.version > before


def test_the_same_file_again_changes_nothing(hours: Calendar) -> None:
    """Not even the calendar's version, for which runs would be gated again."""
    for sample in (GOOGLE, OUTLOOK):
        first = import_ical(hours, sample.encode(), effect="window", source=sample[:30])
        kept = state(hours)
        again = import_ical(hours, sample.encode(), effect="window", source=sample[:30])
        assert counts(again) == [0, 0, 0, first.added]
        assert state(hours) == kept


def state(hours: Calendar) -> list[object]:
    """Return all that an import might have written."""
    hours.refresh_from_db()
    rows = list(Window.objects.order_by("id").values())
    return [hours.version, AuditEntry.objects.count(), rows]


def test_what_is_as_it_was_keeps_its_approval_and_the_rest_asks_again(acme: Owner) -> None:
    """A reason is no change, and a shorter window asks no one; the importer asks for the rest."""
    hours = calendar_of(acme, needs_approval=True)
    ann, root = User.objects.create(username="ann"), User.objects.create_superuser("root")
    import_ical(hours, calendar(*map_of("abcd")), effect="window", source="a.ics")
    for one in Window.objects.all():
        approvals.approve(one, actor=root)
    new = (
        event(*ONCE, uid="a"),
        event(*ONCE, "SUMMARY:another", uid="b"),
        event(ONCE[0], "DURATION:PT9H", uid="c"),
        event(ONCE[0], "DURATION:PT1H", uid="d"),
    )
    report = import_ical(hours, calendar(*new), effect="window", source="a.ics", actor=ann)
    assert counts(report) == [0, 3, 0, 1]
    rows = {one.source_uid: one for one in Window.objects.all()}
    assert [bool(entry_of(rows[uid]).approved) for uid in "abcd"] == [True, True, False, True]
    assert [rows[uid].requested_by for uid in "abcd"] == [None, None, ann, None]
    assert AuditEntry.objects.get(details__changed=3).details["approvals_kept"] == 1
    assert (rows["b"].reason, rows["c"].duration_seconds) == ("another", 9 * 3_600)


def map_of(uids: str) -> list[str]:
    """Return one event for each UID."""
    return [event(*ONCE, uid=uid) for uid in uids]


def test_what_is_gone_is_removed(hours: Calendar) -> None:
    """Cancelled events too; and a moved occurrence is one change of the series and one addition."""
    take(hours, *map_of("abc"))
    assert take(hours, event(*ONCE, uid="a"), event("STATUS:CANCELLED", uid="b")) == [0, 0, 2, 1]
    take(hours, event(*NIGHTS))
    other = event("RECURRENCE-ID:20260613T200000Z", *ONCE)
    assert take(hours, event(*NIGHTS), other) == [1, 1, 0, 0]
    assert take(hours, event(*NIGHTS)) == [0, 1, 1, 0]


def test_others_windows_are_never_touched(hours: Calendar, northwind: Owner) -> None:
    """Made by hand, of another source, of another calendar: even with the same UID."""
    window(hours, opens_in=60, seconds=60)
    window(hours, opens_in=60, seconds=60, source_uid="a")
    take(hours, *map_of("ab"), source="b.ics")
    take(calendar_of(northwind), *map_of("ab"))
    kept = list(Window.objects.order_by("id").values())
    assert take(hours, *map_of("a")) == [1, 0, 0, 0]
    assert take(hours, *map_of("b")) == [1, 0, 1, 0]
    assert take(hours) == [0, 0, 1, 0]
    assert list(Window.objects.order_by("id").values()) == kept


def test_a_file_that_is_wrong_changes_nothing(hours: Calendar) -> None:
    """All that is wrong is told, with the lines; what is right of it is not taken."""
    take(hours, *map_of("ab"))
    kept = list(Window.objects.order_by("id").values())
    with pytest.raises(IcalError, match="line 10") as caught:
        take(hours, event(*NIGHTS), event("DTSTART:x", uid="b"), event(ONCE[0], uid="c"))
    assert len(caught.value.problems) == 2
    assert list(Window.objects.order_by("id").values()) == kept


def test_an_import_does_not_open_a_calendar_for_good(hours: Calendar) -> None:
    """Without any window it would be: a file that has lost its events is refused."""
    take(hours, *map_of("a"))
    for effect in ("window", "freeze"):
        with pytest.raises(IcalError, match="always open"):
            take(hours, event("STATUS:CANCELLED"), effect=effect)
    with pytest.raises(IcalError, match="always open"):
        take(hours, *map_of("a"), effect="freeze")
    window(hours, opens_in=60, seconds=60)
    assert take(hours) == [0, 0, 1, 0]
    assert take(hours, *map_of("a"), source="b.ics", effect="freeze") == [1, 0, 0, 0]
    assert take(hours, source="b.ics", effect="freeze") == [0, 0, 1, 0]


@pytest.mark.parametrize(
    "given",
    [{"source": ""}, {"source": "x" * 201}, {"source": "\x00"}, {"effect": "both"}],
)
def test_a_source_has_a_name_and_an_effect(hours: Calendar, given: dict[str, str]) -> None:
    """Without one it would be that of windows made by hand."""
    with pytest.raises(OptionError):
        take(hours, *map_of("a"), **given)
