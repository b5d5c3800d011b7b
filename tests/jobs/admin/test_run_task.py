"""Runs of a task that no worker knows: found in the lists, moved to another task, or failed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from jobs import submit
from jobs.models import AuditEntry, Owner, Run, Worker
from tests.jobs.admin.conftest import confirm, said
from tests.jobs.scenes import living_worker, submitted

Person = Callable[..., Client]
MAY = ("view_run", "view_worker", "move_run")


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
    assert AuditEntry.objects.get().actor_name == "root"


def test_arguments_that_do_not_fit_are_said(as_root: Client, renamed: Run) -> None:
    """The run stays as it is."""
    page = confirm(as_root, url(renamed, "move"), to="tests.add")
    assert "do not fit" in said(page)[0]
    renamed.refresh_from_db()
    assert renamed.task == "tests.old"


def test_a_run_is_failed_unstarted(as_root: Client, renamed: Run) -> None:
    """It is a dead letter then."""
    confirm(as_root, url(renamed, "fail"), reason="removed")
    renamed.refresh_from_db()
    assert (renamed.state, renamed.error_type) == ("failed", "celery.exceptions.NotRegistered")


@pytest.mark.parametrize("verb", ["move", "fail"])
def test_both_need_their_permission_and_a_role(person: Person, renamed: Run, verb: str) -> None:
    """A viewer of the owner may not, nor an operator without the permission."""
    for client in (
        person("viewer", *MAY, acme="viewer"),
        person("operator", "view_run", "retry_run", acme="operator"),
    ):
        assert client.get(url(renamed, verb)).status_code == 403
    allowed = person("ann", *MAY, acme="operator")
    assert allowed.get(url(renamed, verb)).status_code == 200


def test_the_list_of_runs_finds_them(as_root: Client, acme: Owner, renamed: Run) -> None:
    """By the filter of states."""
    [other] = submitted(acme)
    page = as_root.get(reverse("admin:jobs_run_changelist", query={"state": "unknown"}))
    assert [run.pk for run in page.context["cl"].result_list] == [renamed.pk]
    assert other.pk != renamed.pk


def test_the_list_of_workers_counts_them(as_root: Client, person: Person, renamed: Run) -> None:
    """For a person who may see every owner's runs; each worker's page has its tasks."""
    worker = living_worker()
    Worker.objects.update(tasks=["tests.add", "tests.record"])
    changelist = reverse("admin:jobs_worker_changelist")
    expected = "No worker of queue jobs knows task tests.old: 1 runs wait."
    assert said(as_root.get(changelist)) == [expected]
    assert said(person("ann", *MAY, acme="operator").get(changelist)) == []
    page = as_root.get(reverse("admin:jobs_worker_change", args=[worker]))
    assert "tests.add, tests.record" in page.content.decode()
