"""jobs/admin/calendars/ical_import.py: a file is looked at first, then confirmed, by those who
may.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from jobs.admin.calendars.ical_import import SALT
from jobs.calendars.ical import SIZE_LIMIT
from jobs.models import AuditEntry, Calendar, Owner, Window
from tests.jobs.admin.conftest import said
from tests.jobs.calendars.ical.samples import GOOGLE, calendar, event
from tests.jobs.windows_world import calendar_of

MAY = (
    *("view_calendar", "change_calendar"),
    *("view_window", "add_window", "change_window", "delete_window"),
)
ODD = event("DTSTART:20260606T220000Z", "DURATION:PT1H", "SUMMARY:<b>bold</b>")


@pytest.fixture
def hours(acme: Owner) -> Calendar:
    """A calendar of acme's."""
    return calendar_of(acme)


def at(hours: Calendar) -> str:
    return reverse("admin:jobs_calendar_import", args=[hours.pk])


def look(client: Client, hours: Calendar, data: bytes | str, **fields: Any) -> Any:
    """Send a file; return the page that says what it would do."""
    content = data.encode() if isinstance(data, str) else data
    file = SimpleUploadedFile("team <i>.ics", content)
    return client.post(at(hours), {"file": file, "effect": "window", **fields})


def test_what_it_would_do_is_shown_and_then_done(as_root: Client, hours: Calendar) -> None:
    """Looking makes nothing; confirming does it, under the file's name, in the person's name."""
    page = as_root.get(reverse("admin:jobs_calendar_change", args=[hours.pk]))
    assert at(hours) in page.content.decode()
    assert "csrfmiddlewaretoken" in as_root.get(at(hours)).content.decode()
    answer = look(as_root, hours, GOOGLE)
    assert "4 to be added" in answer.content.decode()
    assert "every week on Saturday and Sunday" in answer.content.decode()
    assert not Window.objects.exists()
    done = as_root.post(at(hours), {"kept": answer.context["kept"]}, follow=True)
    assert said(done) == ["Imported: 4 added, 0 changed, 0 removed, 0 as they were."]
    made = Window.objects.all()
    assert {(one.source, one.requested_by) for one in made} == {("team <i>.ics", root())}
    assert AuditEntry.objects.get().actor == root()
    # A double click does it once more, which changes nothing.
    again = as_root.post(at(hours), {"kept": answer.context["kept"]}, follow=True)
    assert said(again) == ["Imported: 0 added, 0 changed, 0 removed, 4 as they were."]


def root() -> User:
    return User.objects.get(username="root")


def test_what_is_wrong_is_shown_with_its_line(as_root: Client, hours: Calendar) -> None:
    """All of it, and nothing can be confirmed."""
    answer = look(as_root, hours, calendar(event("DTSTART:x"), event(uid="b")))
    assert [line for line, _ in answer.context["problems"]] == [4, 6]
    assert "refused. Nothing is imported." in answer.content.decode()
    assert 'name="kept"' not in answer.content.decode()


def test_a_file_that_is_none_is_refused_by_the_form(as_root: Client, hours: Calendar) -> None:
    """Too large, missing, for an effect that there is not."""
    large = SimpleUploadedFile("a.ics", b"x" * (SIZE_LIMIT + 1))
    for given in ({"file": large, "effect": "window"}, {"effect": "window"}, {}):
        answer = as_root.post(at(hours), given)
        assert answer.status_code == 200 and answer.context["form"].errors
    assert look(as_root, hours, GOOGLE, effect="x").context["form"].errors


def test_only_what_was_looked_at_is_imported(as_root: Client, hours: Calendar) -> None:
    """By this person, into this calendar, as it was signed."""
    other = calendar_of(hours.owner, name="other")  # type: ignore[arg-type]
    kept = look(as_root, hours, calendar(ODD)).context["kept"]
    forged = signing.dumps({"data": "", "of": [hours.pk, root().pk]}, salt=SALT, key="another")
    for place, value in ((other, kept), (hours, kept[:-1]), (hours, forged), (hours, "")):
        answer = as_root.post(at(place), {"kept": value}, follow=True)
        assert "Upload the file again" in said(answer)[0]
    assert not Window.objects.exists()


def test_only_who_edits_the_calendar_may_import(
    hours: Calendar, northwind: Owner, person: Callable[..., Client]
) -> None:
    """With all permissions on windows; other owners' calendars do not exist."""
    admin = person("ann", *MAY, acme="admin", northwind="viewer")
    assert look(admin, hours, calendar(ODD)).context["report"].added == 1
    assert look(admin, calendar_of(northwind), calendar(ODD)).status_code == 403
    assert look(person("bob", *MAY, northwind="admin"), hours, calendar(ODD)).status_code == 404
    assert look(person("cat", *MAY, acme="operator"), hours, calendar(ODD)).status_code == 403
    assert look(person("dan", *MAY[:-1], acme="admin"), hours, calendar(ODD)).status_code == 403
    shared = Calendar.objects.create(name="holidays")
    assert look(admin, shared, calendar(ODD)).status_code == 404
    assert admin.get(reverse("admin:jobs_calendar_import", args=[2**64])).status_code == 404
    assert "Location" in Client().get(at(hours)).headers
    assert not Window.objects.exists()
