"""manage.py fleet unknown-tasks, move-task and fail-task: what an operator reads and changes."""

import json

import pytest
from django.core.management import CommandError, call_command

from jobs import submit
from jobs.models import AuditEntry, Owner, Run, Worker
from tests.jobs.management.conftest import Printed
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.without_history import job_without_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Owner:
    """Acme has two runs of a task that was renamed; one, and a job, of another that is removed."""
    acme = Owner.objects.create(slug="acme")
    Worker.objects.filter(id=living_worker()).update(tasks=["tests.record"])
    renamed = [submit("tests.record", n=n, owner=acme) for n in range(2)]
    Run.objects.filter(id__in=[run.id for run in renamed]).update(task="tests.old")
    submitted(acme, countdown=60)
    job_without_history(acme)
    return acme


def test_unknown_tasks_are_listed(acme: Owner, printed: Printed) -> None:
    """For people and for programs; a sentence when there is none."""
    assert printed("fleet unknown-tasks").splitlines() == [
        "jobs  tests.old  2 waiting, 2 queued",
        "jobs  tests.add  1 waiting, 0 queued",
    ]
    [first, _second] = json.loads(printed("fleet unknown-tasks --json"))["unknown_tasks"]
    assert first == {"queue": "jobs", "task": "tests.old", "count": 2, "due_count": 2}
    Worker.objects.update(tasks=None)
    assert printed("fleet unknown-tasks") == "Live workers know the tasks of all waiting runs.\n"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("move-task tests.old tests.record --dry-run", ["2 runs and 0 jobs would be moved"]),
        (
            "move-task tests.add tests.record",
            [
                "0 runs and 0 jobs moved to tests.record.",
                "refused: argument x: tests.record has no such argument",
            ],
        ),
        ("fail-task tests.add --queue slow", ["0 runs failed."]),
        ("fail-task tests.add --dry-run", ["1 run would be failed."]),
        (
            "fail-task tests.add",
            ["1 run failed.", "1 enabled job of tests.add will make more runs."],
        ),
    ],
)
def test_each_change_is_told(acme: Owner, printed: Printed, words: str, lines: list[str]) -> None:
    """What was changed, or would be; what does not fit, and jobs that would make more runs."""
    said = printed("fleet", *words.split())
    assert all(line in said for line in lines), said


def test_a_program_reads_what_was_moved(acme: Owner, printed: Printed) -> None:
    """The reason is in the audit."""
    moved = printed("fleet move-task tests.old tests.record --reason renamed --json")
    assert json.loads(moved) == {
        "task": "tests.old",
        "to": "tests.record",
        "is_dry_run": False,
        "runs": 2,
        "jobs": 0,
        "refused": 0,
        "problems": {},
    }
    assert AuditEntry.objects.get().reason == "renamed"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("move-task tests.add tests.recor", r"did you mean 'tests\.record'"),
        ("fail-task tests.ad", r"option task: no waiting run.*'tests\.ad'"),
    ],
)
def test_a_task_that_nothing_has_is_an_error(acme: Owner, words: str, problem: str) -> None:
    """It is probably misspelt."""
    with pytest.raises(CommandError, match=problem):
        call_command("fleet", *words.split())
