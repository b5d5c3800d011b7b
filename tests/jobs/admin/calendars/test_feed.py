"""jobs/admin/calendars/feed.py: an address is shown once, and can be taken back."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin
from django.test import Client
from django.urls import path, reverse
from pytest_django import Settings

from jobs.models import AuditEntry, Calendar, Owner
from tests.jobs.windows_world import calendar_of

# A project that has not mounted jobs.urls: this module is its urls.py.
urlpatterns = [path("admin/", admin.site.urls)]

NO_ADDRESS = "The feed has no address."


def at(calendar: Calendar) -> str:
    return reverse("admin:jobs_calendar_feed", args=[calendar.pk])


def read(address: str) -> int:
    """Return what somebody without a login gets there."""
    return Client().get(urlsplit(address).path).status_code


def given(client: Client, calendar: Calendar) -> str:
    """Have an address made; return it."""
    answer: Any = client.post(at(calendar), {"new": "1"})
    address: str = answer.context["address"]
    assert address in answer.content.decode() and "no-store" in answer["Cache-Control"]
    return address


def test_an_address_is_shown_once(as_root: Client, acme: Owner) -> None:
    """Another one takes its place; forgotten, there is none."""
    calendar = calendar_of(acme)
    page = as_root.get(reverse("admin:jobs_calendar_change", args=[calendar.pk]))
    assert at(calendar) in page.content.decode()
    assert NO_ADDRESS in as_root.get(at(calendar)).content.decode()
    first = given(as_root, calendar)
    assert first.startswith("http://testserver/calendars/") and read(first) == 200
    again = as_root.get(at(calendar)).content.decode()
    assert NO_ADDRESS not in again and first.rpartition("/")[2] not in again
    second = given(as_root, calendar)
    assert (read(first), read(second)) == (404, 200)
    assert NO_ADDRESS in as_root.post(at(calendar), {"forget": "1"}, follow=True).content.decode()
    assert read(second) == 404
    assert {entry.actor_name for entry in AuditEntry.objects.all()} == {"root"}


def test_only_who_edits_the_calendar_gives_it_out(
    acme: Owner, northwind: Owner, person: Callable[..., Client]
) -> None:
    """Others' calendars do not exist."""
    may, calendar = ("view_calendar", "change_calendar"), calendar_of(acme)
    assert read(given(person("ann", *may, acme="admin"), calendar)) == 200
    kept = Calendar.objects.values("feed_hash").get()
    for name, roles, status in (
        ("bob", {"northwind": "admin"}, 404),
        ("cat", {"acme": "operator"}, 403),
    ):
        client = person(name, *may, **roles)
        for fields in ({"new": "1"}, {"forget": "1"}):
            assert client.post(at(calendar), fields).status_code == status
        assert client.get(at(calendar)).status_code == status
    assert Calendar.objects.values("feed_hash").get() == kept


def test_a_project_without_our_urls_is_told_so(
    as_root: Client, acme: Owner, settings: Settings
) -> None:
    """The page names the line that is missing; no secret is made that nobody could use."""
    calendar = calendar_of(acme)
    settings.ROOT_URLCONF = __name__
    for answer in (as_root.get(at(calendar)), as_root.post(at(calendar), {"new": "1"})):
        page = answer.content.decode()
        assert answer.status_code == 200 and "include(&quot;jobs.urls&quot;)" in page
        assert 'name="new"' not in page and NO_ADDRESS in page
    assert not AuditEntry.objects.exists()
