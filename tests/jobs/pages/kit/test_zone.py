"""jobs/pages/kit/zone.py: times are shown and read in the reader's time zone."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from jobs.models import Owner
from jobs.pages.kit.zone import BROWSER_COOKIE, CHOSEN_COOKIE, in_reader_zone
from tests.jobs.scenes import submitted


def zone_with(**cookies: str) -> str:
    """Return the zone of a page for a request with these cookies."""
    request = RequestFactory().get("/")
    request.COOKIES.update(cookies)
    with in_reader_zone(request):
        return timezone.get_current_timezone_name()


@pytest.mark.parametrize(
    ("chosen", "browser", "zone"),
    [
        ("", "", "UTC"),
        ("", "Asia/Tokyo", "Asia/Tokyo"),
        ("Europe/Berlin", "Asia/Tokyo", "Europe/Berlin"),
        ("Moon/Sea", "Asia/Tokyo", "Asia/Tokyo"),
        ("../../etc/passwd", "Moon/Sea", "UTC"),
    ],
)
def test_a_chosen_zone_is_stronger_than_that_of_the_browser(
    chosen: str, browser: str, zone: str
) -> None:
    """A name that is no zone is as none."""
    assert zone_with(**{CHOSEN_COOKIE: chosen, BROWSER_COOKIE: browser}) == zone
    assert timezone.get_current_timezone_name() == "UTC"


def test_a_page_shows_and_reads_times_in_the_zone_of_the_browser(
    as_root: Client, acme: Owner
) -> None:
    """UTC stays on hover; a filter without an offset is in the same zone."""
    due = datetime.now(UTC).replace(hour=22, minute=30, second=0, microsecond=0) + timedelta(days=9)
    next_day = due.date() + timedelta(days=1)
    [run] = submitted(acme, eta=due)
    as_root.cookies[BROWSER_COOKIE] = "Asia/Tokyo"
    shown = as_root.get(reverse("jobs:run", args=[run.pk])).content.decode()
    assert f"{next_day} 07:30:00.000 JST" in shown and f"{due:%Y-%m-%d} 22:30:00" in shown
    page = as_root.get(reverse("jobs:runs"), {"after": f"{next_day}T07:30"})
    assert page.context["form"].cleaned_data["after"] == due
    assert timezone.get_current_timezone_name() == "UTC", "the zone ends with the page"


def test_a_zone_is_chosen_at_the_foot_of_a_page(as_root: Client) -> None:
    """Without JavaScript; a wrong name is refused, and an empty field ends the choice."""
    theme, home = reverse("jobs:theme"), reverse("jobs:overview")
    as_root.post(theme, {"zone": "Europe/Berlin", "next": home})
    assert 'value="Europe/Berlin"' in as_root.get(home).content.decode()
    refused = as_root.post(theme, {"zone": "Berlin", "next": home}, follow=True)
    assert "This is no time zone" in refused.content.decode()
    assert as_root.cookies[CHOSEN_COOKIE].value == "Europe/Berlin"
    as_root.post(theme, {"theme": "dark", "next": home})
    assert as_root.cookies[CHOSEN_COOKIE].value == "Europe/Berlin", "another form"
    as_root.post(theme, {"zone": "", "next": home})
    assert 'name="zone" size="16" value=""' in as_root.get(home).content.decode()
