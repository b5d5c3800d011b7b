"""Runs of a task that no worker knows: found in the lists, moved to another task, or failed."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs import submit
from jobs.core.sql import now
from jobs.models import AuditEntry, Owner, Run, Worker
from tests.jobs.admin.conftest import confirm, confirm_bulk
from tests.jobs.scenes import living_worker, silence

pytestmark = pytest.mark.usefixtures("offered")


def url(run: Run, verb: str) -> str:
    return reverse("admin:jobs_run_actions", args=[run.id, verb])


@pytest.fixture
def renamed(acme: Owner) -> Run:
    """A run of a task that was renamed to `tests.record`."""
    run = submit("tests.record", n=1, owner=acme)
    Run.objects.update(task="tests.old", blocked_by="task")
    run.refresh_from_db()
    return run


def test_a_run_is_moved_to_another_task(as_root: Client, renamed: Run) -> None:
    """A name that is unknown is refused in the form, with the near miss."""
    page = confirm(as_root, url(renamed, "move"), to="tests.recor")
    assert "did you mean" in page.content.decode()
    confirm(as_root, url(renamed, "move"), to="tests.record", reason="renamed")
    renamed.refresh_from_db()
    assert (renamed.task, renamed.blocked_by) == ("tests.record", "")
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.object_id) == ("root", str(renamed.id))


@pytest.mark.parametrize(
    "task", ["fairshift.delete_jobs", "fairshift.http_request", "tests.record"]
)
def test_a_run_is_moved_to_an_offered_task_only(
    as_root: Client, renamed: Run, settings: Any, task: str
) -> None:
    """A task that no form offers, and one of Fairshift's own, is refused as if it were unknown."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ()}
    page = confirm(as_root, url(renamed, "move"), to=task)
    assert "to" in page.context["form"].errors
    renamed.refresh_from_db()
    assert renamed.task == "tests.old"


@pytest.mark.parametrize(("verb", "action"), [("move", "move to task"), ("fail", "fail unstarted")])
def test_a_bulk_is_audited_once_with_its_actor(
    as_root: Client, acme: Owner, renamed: Run, verb: str, action: str
) -> None:
    """An entry for the owner, with how many runs of which task."""
    other = submit("tests.record", n=2, owner=acme)
    Run.objects.update(task="tests.old")
    keys = [str(renamed.pk), str(other.pk)]
    confirm_bulk(
        as_root, reverse("admin:jobs_run_changelist"), verb, keys, to="tests.record", reason="old"
    )
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor_name, entry.reason) == (action, "root", "old")
    assert (entry.owner, entry.details["task"], entry.details["count"]) == (acme, "tests.old", 2)


def test_the_list_of_workers_shows_those_that_take_nothing(as_root: Client) -> None:
    """Neither alive nor lost: they beat, and have no process or no queue."""
    living_worker("w1@here")
    living_worker("w2@here", queues=[])
    silence(living_worker("w3@here"), seconds=31)
    changelist = reverse("admin:jobs_worker_changelist")
    for state, name in {"alive": "w1@here", "idle": "w2@here", "lost": "w3@here"}.items():
        page = as_root.get(changelist, {"state": state})
        assert [row.hostname for row in page.context["cl"].result_list] == [name]
    assert "consumes no queue" in as_root.get(changelist).content.decode()
    Worker.objects.update(draining_since=now())
    shown = as_root.get(changelist).content.decode()
    assert "draining" in shown and "consumes no queue" not in shown
