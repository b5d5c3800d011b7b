"""What no worker takes: runs of an unknown task are moved, workers without a queue are shown."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs import submit
from jobs.core.sql import now
from jobs.models import Owner, Run, Worker
from tests.jobs.admin.conftest import confirm
from tests.jobs.scenes import living_worker


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
