"""Runs let start outside their windows, or moved to another task; workers that take no runs."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from jobs import submit
from jobs.calendars import changes
from jobs.core.sql import now
from jobs.models import Calendar, Owner, Run, Worker
from tests.jobs.admin.conftest import confirm, said
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.windows_world import calendar_of, freeze


@pytest.fixture
def held(acme: Owner) -> list[Run]:
    """Three runs of acme that a freeze holds."""
    freeze(calendar_of(acme))
    return submitted(acme, count=3)


@pytest.fixture
def ann(person: Callable[..., Client], acme: Owner) -> Client:
    """An operator of acme."""
    return person("ann", "view_run", "override_window", acme="operator")


def action(run: Run) -> str:
    return reverse("admin:jobs_run_actions", args=[run.id, "override"])


def page(run: Run) -> str:
    return reverse("admin:jobs_run_change", args=[run.id])


def test_a_run_is_let_start_and_its_page_says_who_and_why(ann: Client, held: list[Run]) -> None:
    """Not without a reason; once it is, there is nothing more to override."""
    asked = confirm(ann, action(held[0]), reason="")
    assert "required" in asked.content.decode() and Run.objects.filter(state="held").count() == 3
    confirm(ann, action(held[0]), reason="pager <b>duty</b>")
    assert list(Run.objects.filter(state="queued")) == [held[0]]
    text = ann.get(reverse("jobs:run", args=[held[0].pk])).content.decode()
    assert "windows overridden by ann" in text and "pager &lt;b&gt;duty" in text
    assert "may start" in said(ann.get(action(held[0]), follow=True))[0]
    why = held[1].why_waiting()
    assert why and escape(why) in ann.get(page(held[1])).content.decode()


def test_a_shared_calendar_that_still_holds_is_named(
    ann: Client, as_root: Client, held: list[Run], acme: Owner
) -> None:
    """After an operator's override, and when it is repeated; a superuser's counts for it."""
    shared = Calendar.objects.create(owner=None, name="year end <1>", needs_approval=False)
    changes.attach(shared, acme)
    freeze(shared)
    for _ in range(2):
        [text] = said(confirm(ann, action(held[0]), reason="storm"))
        assert "year end <1>" in text and "only superusers override" in text.lower()
    assert "year end &lt;1&gt;" in ann.get(page(held[0])).content.decode()
    assert not Run.objects.filter(state="queued").exists()
    [text] = said(confirm(as_root, action(held[0]), reason="storm"))
    assert "still holds" not in text and Run.objects.get(state="queued") == held[0]


@pytest.mark.parametrize(
    "task", ["fairshift.delete_jobs", "fairshift.http_request", "tests.record", "tests.recor"]
)
def test_a_run_is_moved_to_an_offered_task_only(
    as_root: Client, acme: Owner, settings: Any, task: str
) -> None:
    """A task that no form offers, and one of Fairshift's own, is refused as if it were unknown."""
    run = submit("tests.record", n=1, owner=acme)
    Run.objects.update(task="tests.old", blocked_by="task")
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ()}
    page = confirm(as_root, reverse("admin:jobs_run_actions", args=[run.id, "move"]), to=task)
    assert "to" in page.context["form"].errors
    run.refresh_from_db()
    assert run.task == "tests.old"


def test_the_list_of_workers_shows_those_that_take_nothing(as_root: Client) -> None:
    """They beat, and have no queue. A worker that is drained is draining above all."""
    living_worker("w2@here", queues=[])
    changelist = reverse("admin:jobs_worker_changelist")
    assert "consumes no queue" in as_root.get(changelist).content.decode()
    Worker.objects.update(draining_since=now())
    shown = as_root.get(changelist).content.decode()
    assert "draining" in shown and "consumes no queue" not in shown
