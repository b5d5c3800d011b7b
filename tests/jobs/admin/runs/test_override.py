"""Runs let start outside their windows: with permission and a reason, told on their page."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from jobs.calendars import changes
from jobs.models import Calendar, Owner, Run
from tests.jobs.admin.conftest import confirm, said
from tests.jobs.scenes import submitted
from tests.jobs.windows_world import calendar_of, freeze

VIEW = ("view_run", "view_submission")
Person = Callable[..., Client]


@pytest.fixture
def held(acme: Owner) -> list[Run]:
    """Three runs of acme that a freeze holds."""
    freeze(calendar_of(acme))
    runs = submitted(acme, count=3)
    assert {run.state for run in Run.objects.all()} == {"held"}
    return runs


def at(run: Run, page: str = "actions") -> str:
    return reverse(f"admin:jobs_run_{page}", args=[run.id, *(["override"] * (page == "actions"))])


def test_a_run_is_let_start_and_its_page_says_who_and_why(person: Person, held: list[Run]) -> None:
    """Not without a reason; once it is, there is nothing more to override."""
    client = person("ann", *VIEW, "override_window", acme="operator")
    asked = confirm(client, at(held[0]), reason="")
    assert "required" in asked.content.decode() and Run.objects.filter(state="held").count() == 3
    confirm(client, at(held[0]), reason="pager <b>duty</b>")
    assert list(Run.objects.filter(state="queued")) == [held[0]]
    text = client.get(reverse("jobs:run", args=[held[0].pk])).content.decode()
    assert "windows overridden by ann" in text and "pager &lt;b&gt;duty" in text
    again = client.get(at(held[0]), follow=True)
    assert "does not wait, or may start" in said(again)[0]
    held[1].refresh_from_db()
    why = held[1].why_waiting()
    assert why and escape(why) in client.get(at(held[1], "change")).content.decode()


@pytest.mark.parametrize("of", ["run", "submission"])
def test_a_shared_calendar_that_still_holds_is_named(
    person: Person, held: list[Run], acme: Owner, of: str
) -> None:
    """After an operator's override, and when it is repeated; a superuser's counts for it."""
    shared = Calendar.objects.create(owner=None, name="year end <1>", needs_approval=False)
    changes.attach(shared, acme)
    freeze(shared)
    key = held[0].pk if of == "run" else held[0].submission_id
    url = reverse(f"admin:jobs_{of}_actions", args=[key, "override"])
    client = person("ann", *VIEW, "override_window", acme="operator")
    for _ in range(2):
        [text] = said(confirm(client, url, reason="storm"))
        assert "year end <1>" in text and "only superusers override" in text.lower()
    page = client.get(at(held[0], "change")).content.decode()
    assert "year end &lt;1&gt;" in page
    assert Run.objects.filter(state="held").count() == 3
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    [text] = said(confirm(root, url, reason="storm"))
    assert "still holds" not in text
    assert Run.objects.filter(state="queued").count() == (1 if of == "run" else 3)
