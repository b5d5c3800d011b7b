"""jobs/runs/reads/unknown_tasks.py: runs whose task no worker knows: counted, moved to another, or
failed.
"""

from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from django.contrib.auth.models import User

from fleet import Node
from jobs import submit
from jobs.core.crypto import read_message
from jobs.core.errors import OptionError, UnknownTask
from jobs.models import AuditEntry, Job, Owner, Run, Worker
from jobs.runs import dispatch, renamed_tasks
from jobs.runs.admission import refuse_unknown
from jobs.runs.manual_retry import reopen_runs
from jobs.runs.reads import unknown_tasks
from jobs.runs.reads.unknown_tasks import Unknown
from jobs.runs.renamed_tasks import fail_task, move_runs, move_task
from jobs.system.heartbeat import beat
from tests.jobs.scenes import (
    AdmissionRequest,
    admitted,
    known,
    living_worker,
    messages,
    states,
    submitted,
)
from tests.jobs.without_history import job_without_history

pytestmark = pytest.mark.usefixtures("committed")

OLD, NEW = "tests.add", "tests.record"


def worker_with(*tasks: str, queues: tuple[str, ...] = ("jobs",)) -> Node:
    """Return a live worker that knows these tasks."""
    worker = Node(uuid4(), "w1@here", 1, "prefork", 4, queues, tasks)
    beat(worker, [])
    return worker


def renamed(owner: Owner, count: int = 1, **options: Any) -> list[Run]:
    """Return runs of a task that was renamed to `tests.record` since they were submitted."""
    runs = [submit(NEW, n=n, owner=owner, **options) for n in range(count)]
    Run.objects.filter(id__in=[run.id for run in runs]).update(task="tests.old_record")
    return runs


# --- counted ---------------------------------------------------------------------------------


def test_waiting_runs_of_unknown_tasks_are_counted(acme: Owner) -> None:
    """By queue and task, due ones and those of later."""
    worker_with(NEW)
    submitted(acme, 3)
    submitted(acme, 2, countdown=60)
    elsewhere = [run.id for run in submitted(acme)]
    Run.objects.filter(id__in=elsewhere).update(queue="slow")
    submit(NEW, n=1, owner=acme)
    assert unknown_tasks.unknown_tasks() == [Unknown("jobs", OLD, count=5, due_count=3)]


def test_a_task_that_some_live_worker_knows_is_not_counted(acme: Owner) -> None:
    """One is enough; one that does not say which it knows may know it."""
    submitted(acme)
    worker_with(NEW)
    old = worker_with(NEW, OLD)
    assert unknown_tasks.unknown_tasks() == []
    Worker.objects.filter(id=old.id).update(tasks=None)
    assert unknown_tasks.unknown_tasks() == []
    Worker.objects.filter(id=old.id).update(heartbeat_at="2026-01-01T00:00Z")
    assert [found.task for found in unknown_tasks.unknown_tasks()] == [OLD]


def test_a_long_backlog_hides_no_run_that_met_a_worker(acme: Owner) -> None:
    """Others are counted among the oldest runs of each state only; as many of those are read."""
    ready, first, second = submitted(acme, 3)
    Run.objects.filter(id=ready.id).update(task=NEW)
    worker_with(NEW)
    assert unknown_tasks.unknown_tasks(most=1) == []
    refuse_unknown([AdmissionRequest(str(first.id), OLD), AdmissionRequest(str(second.id), OLD)])
    assert unknown_tasks.unknown_tasks(most=1) == [Unknown("jobs", OLD, count=1, due_count=1)]


def test_a_broken_row_of_a_worker_stops_nothing(acme: Owner) -> None:
    """Whatever raw SQL has written there: admission and sweep ask it for all."""
    submitted(acme)
    worker = worker_with(NEW)
    Worker.objects.filter(id=worker.id).update(queues={"not": "a list"}, tasks=5)
    assert unknown_tasks.unknown_tasks() == []


# --- moved -----------------------------------------------------------------------------------


def test_a_moved_run_runs_the_other_task(acme: Owner) -> None:
    """Its new hint replaces the one that names the old task, and is there at once.

    A dry run counts it and changes nothing.
    """
    [run] = renamed(acme)
    dispatch.publish([run.id])
    foreseen = move_task("tests.old_record", to=NEW, is_dry_run=True)
    assert (foreseen.runs, Run.objects.get().task) == (1, "tests.old_record")
    moved = move_task("tests.old_record", to=NEW)
    assert (moved.runs, moved.refused) == (1, 0)
    run.refresh_from_db()
    assert [message["headers"]["task"] for message in messages()] == [NEW]
    assert known() == [f"{run.id}:{run.token + 1}"]
    assert admitted(living_worker(), run).token == run.token + 1


def test_a_hint_that_a_worker_holds_is_replaced_too(acme: Owner) -> None:
    """It cannot be withdrawn, and so the new one is another message."""
    [run] = renamed(acme)
    with current_app.connection_for_write() as connected:
        assert connected.default_channel.basic_get("jobs") is not None
        move_task("tests.old_record", to=NEW)
        assert [message["headers"]["task"] for message in messages()] == [NEW]
        run.refresh_from_db()
        assert f"{run.id}:{run.token + 1}" in known()


def test_what_is_due_later_is_moved_too(acme: Owner) -> None:
    """Without a hint; of the queue only that was asked for, and not what a worker has."""
    [later] = renamed(acme, countdown=60)
    [elsewhere] = renamed(acme)
    Run.objects.filter(id=elsewhere.id).update(queue="slow")
    [taken] = renamed(acme)
    taken.refresh_from_db()
    admitted(living_worker(), taken)
    assert move_task("tests.old_record", to=NEW, queue="jobs").runs == 1
    tasks = dict(Run.objects.values_list("id", "task"))
    assert tasks[later.id] == NEW
    assert {tasks[elsewhere.id], tasks[taken.id]} == {"tests.old_record"}
    later.refresh_from_db()
    assert later.token == 0


def test_arguments_that_do_not_fit_stay(acme: Owner) -> None:
    """They are counted, with the reason; nothing of them is changed."""
    [run] = submitted(acme)
    moved = move_task(OLD, to=NEW)
    assert (moved.runs, moved.refused) == (0, 1)
    [(problem, count)] = moved.problems.items()
    assert ("no such argument" in problem, count) == (True, 1)
    run.refresh_from_db()
    assert (run.task, run.token) == (OLD, 0)


@pytest.mark.parametrize("stored", [b'[["7"], {}, null]', b'[[], {"n": "7"}, null]'])
def test_a_moved_run_has_the_arguments_of_a_submit(acme: Owner, stored: bytes) -> None:
    """In the types and by the names of the new task: it is not called with what it never was."""
    [run] = renamed(acme)
    Run.objects.update(payload=stored.replace(b"null", b'{"chain": null}'))
    assert move_task("tests.old_record", to=NEW).runs == 1
    run.refresh_from_db()
    assert read_message(run.payload, key=0, place=run.place) == ([], {"n": 7}, {"chain": None})


def test_a_moved_job_has_the_arguments_of_an_upsert(acme: Owner) -> None:
    """Its next runs are called with them."""
    job = job_without_history(acme, task="tests.old_add")
    Job.objects.update(payload=b'[["7", "8"], {}, {}]')
    assert move_task("tests.old_add", to=OLD).jobs == 1
    job.refresh_from_db()
    moved = read_message(job.payload, key=0, place=job.place)
    assert moved == ([], {"x": 7, "y": 8}, {})


def test_recurring_jobs_are_moved_with_their_runs(acme: Owner, northwind: Owner) -> None:
    """Else they would go on to make runs of the old task; not where one queue is meant."""
    job = job_without_history(acme, task="tests.old_add")
    odd = job_without_history(northwind, task="tests.old_add", arguments={"z": 1})
    assert move_task("tests.old_add", to=OLD, queue="jobs").jobs == 0
    moved = move_task("tests.old_add", to=OLD)
    assert (moved.jobs, moved.refused) == (1, 1)
    assert dict(Job.objects.values_list("pk", "task")) == {job.pk: OLD, odd.pk: "tests.old_add"}


@pytest.mark.parametrize(
    ("to", "error", "problem"),
    [
        ("tests.recor", UnknownTask, r"tests\.record"),
        ("fairshift.delete_jobs", OptionError, "a task of Fairshift"),
        ("fairshift.management_command", OptionError, "a task of Fairshift"),
    ],
)
def test_nothing_is_moved_to_a_task_that_is_not_for_callers(
    acme: Owner, to: str, error: type[Exception], problem: str
) -> None:
    """An unknown one is refused with the near miss.

    Fairshift's own act for all owners, or outside of the project's code.
    """
    [run] = submitted(acme)
    for move in (
        lambda: move_task(OLD, to=to),
        lambda: move_runs([run.id], to=to),
        lambda: move_task(OLD, to=to, is_dry_run=True),
    ):
        with pytest.raises(error, match=problem):
            move()
    with pytest.raises(OptionError, match="reason"):
        move_runs([run.id], to=NEW, reason="x" * 501)


def test_a_move_is_audited_by_owner(acme: Owner, northwind: Owner) -> None:
    """Who, why, from which task to which, and how many runs."""
    anna = User(pk=4711, username="anna")
    renamed(acme, 2)
    renamed(northwind)
    move_task("tests.old_record", to=NEW, actor=anna, reason="renamed in 2.0")
    entries = AuditEntry.objects.order_by("id")
    assert [(entry.owner, entry.details["count"]) for entry in entries] == [
        (acme, 2),
        (northwind, 1),
    ]
    assert {(entry.action, entry.actor_name, entry.reason) for entry in entries} == {
        ("move to task", "anna", "renamed in 2.0")
    }
    assert entries[0].details == {"task": "tests.old_record", "to": NEW, "count": 2}


# --- failed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"countdown": 60}])
def test_a_failed_run_says_why_and_may_be_opened_again(acme: Owner, options: Any) -> None:
    """As a dead letter; the next hint is of the queue only when an operator retries it."""
    [run] = renamed(acme, **options)
    assert fail_task("tests.old_record", is_dry_run=True).runs == 1
    assert states(run)[-1] in ("queued", "scheduled") and not AuditEntry.objects.exists()
    assert fail_task("tests.old_record").runs == 1
    assert states(run)[-1] == "failed"
    assert run.error_type == "celery.exceptions.NotRegistered"
    assert run.error_message == "no worker knows tests.old_record"
    assert known() == []
    reopen_runs([run.id])
    assert states(run)[-1] == "queued"


def test_every_chunk_has_its_turn(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long backlog is moved in transactions of bounded size, what stays is passed over."""
    monkeypatch.setattr(renamed_tasks, "CHUNK", 2)
    renamed(acme, 5)
    submitted(acme, 3)
    Run.objects.update(task="tests.old_record")
    moved = move_task("tests.old_record", to=NEW)
    assert (moved.runs, moved.refused) == (5, 3)
