"""manage.py fleet unknown-tasks, move-task and fail-task: what an operator reads and changes."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs import submit
from jobs.models import AuditEntry, Owner, Run, Worker
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.without_history import job_without_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Owner:
    """Acme has two runs of a task that was renamed, and one of another that was removed."""
    acme = Owner.objects.create(slug="acme")
    Worker.objects.filter(id=living_worker()).update(tasks=["tests.record"])
    renamed = [submit("tests.record", n=n, owner=acme) for n in range(2)]
    Run.objects.filter(id__in=[run.id for run in renamed]).update(task="tests.old")
    submitted(acme, countdown=60)
    return acme


def told(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    call_command("fleet", *options)
    return capsys.readouterr().out


def read(capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    return json.loads(told(capsys, *options, "--json"))


def test_unknown_tasks_are_listed(acme: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    """For people and for programs; a sentence when there is none."""
    assert told(capsys, "unknown-tasks").splitlines() == [
        "jobs  tests.old  2 waiting, 2 queued",
        "jobs  tests.add  1 waiting, 0 queued",
    ]
    assert read(capsys, "unknown-tasks")["unknown_tasks"][0] == {
        "queue": "jobs",
        "task": "tests.old",
        "count": 2,
        "due_count": 2,
    }
    Worker.objects.update(tasks=None)
    assert told(capsys, "unknown-tasks") == "Live workers know the tasks of all waiting runs.\n"


def test_a_renamed_task_is_moved(acme: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run says what would be moved; the reason is in the audit."""
    move = ("move-task", "tests.old", "tests.record")
    assert "2 runs and 0 jobs would be moved" in told(capsys, *move, "--dry-run")
    assert read(capsys, *move, "--reason", "renamed") == {
        "task": "tests.old",
        "to": "tests.record",
        "is_dry_run": False,
        "runs": 2,
        "jobs": 0,
        "refused": 0,
        "problems": {},
    }
    assert AuditEntry.objects.get().reason == "renamed"
    assert Run.objects.filter(task="tests.record").count() == 2


def test_what_does_not_fit_is_said(acme: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    """With the argument that is wrong; an unknown task is refused as a whole."""
    said = told(capsys, "move-task", "tests.add", "tests.record")
    assert "0 runs and 0 jobs moved to tests.record." in said
    assert "1 refused: argument x: tests.record has no such argument" in said
    with pytest.raises(CommandError, match=r"did you mean 'tests\.record'"):
        told(capsys, "move-task", "tests.add", "tests.recor")


def test_a_removed_task_is_failed(acme: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one queue or all; jobs that would make more runs are named."""
    job_without_history(acme)
    fail = ("fail-task", "tests.add")
    assert "0 runs failed." in told(capsys, *fail, "--queue", "slow")
    assert "1 run would be failed." in told(capsys, *fail, "--dry-run")
    said = told(capsys, *fail)
    assert "1 run failed." in said
    assert "1 enabled job of tests.add will make more runs." in said
    assert Run.objects.get(task="tests.add").state == "failed"


def test_a_task_that_nothing_has_is_an_error(acme: Owner) -> None:
    """It is probably misspelt; a task whose last run has ended is none."""
    with pytest.raises(CommandError, match=r"option task: no waiting run.*'tests\.ad'"):
        call_command("fleet", "fail-task", "tests.ad")
    call_command("fleet", "fail-task", "tests.add")
