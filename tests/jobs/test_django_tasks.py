"""jobs/django_tasks.py: each point of Django's task interface (DEP 14), on durable runs.

With Django 6 it is `django.tasks`, before that the package django-tasks.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from django.test import override_settings
from pytest_django import Settings

from jobs import django_tasks, submit
from jobs.core.errors import OptionError
from jobs.management.testing.harness import Fairshift
from jobs.models import Owner, Run

PACKAGE = "django.tasks" if find_spec("django.tasks") else "django_tasks"
api: Any = import_module(PACKAGE)
errors: Any = import_module(f"{PACKAGE}.exceptions")
signals: Any = import_module(f"{PACKAGE}.signals")
INVALID: Any = getattr(errors, "InvalidTaskError", None) or errors.InvalidTask
STATUS: Any = api.TaskResultStatus
TASKS = {
    "default": {
        "BACKEND": "jobs.django_tasks.Backend",
        "QUEUES": ["default", "system"],
        "OPTIONS": {"owner": "acme", "max_attempts": 2},
    },
    "other": {"BACKEND": "jobs.django_tasks.Backend", "OPTIONS": {"queues": {"default": "jobs"}}},
}

with override_settings(TASKS=TASKS):

    @api.task()
    def add(x: int, y: int = 1) -> int:
        """Add two numbers."""
        return x + y

    @api.task(takes_context=True)
    def attempt(context: Any, fails: int) -> list[Any]:
        """Fail in the first attempts; return what the context says."""
        if context.attempt <= fails:
            raise ValueError(f"attempt {context.attempt}")
        return [context.attempt, context.task_result.id, context.task_result.status]

    @api.task()
    async def later(x: int) -> int:
        """Return a number from async code."""
        await asyncio.sleep(0)
        return x

    @api.task()
    def exits() -> None:
        """End as a script does."""
        raise SystemExit("enough")

    @api.task()
    def unstorable() -> Any:
        """Return what JSON cannot hold."""
        return lambda: None

    @api.task()
    def child() -> str:
        """Enqueue for the owner of the run."""
        result: str = add.using(backend="other").enqueue(5).id
        return result


@pytest.fixture(autouse=True)
def _tasks(settings: Settings, fairshift: Fairshift, acme: Owner) -> None:
    settings.TASKS = TASKS


@pytest.fixture
def sent() -> Iterator[list[str]]:
    """The signals that are sent, by name."""
    found: list[str] = []
    names = ("task_enqueued", "task_started")
    heard = {name: lambda name=name, **_: found.append(name) for name in names}
    for name, receiver in heard.items():
        getattr(signals, name).connect(receiver)
    yield found
    for name, receiver in heard.items():
        getattr(signals, name).disconnect(receiver)


def test_a_task_is_a_durable_run(fairshift: Fairshift, acme: Owner, sent: list[str]) -> None:
    """Ready until a worker has run it; its return value, times and worker are then known."""
    result = add.enqueue(2, y=3)
    [run] = fairshift.submitted(owner=acme)
    assert (result.id, result.status, result.attempts) == (str(run.id), STATUS.READY, 0)
    assert (result.args, result.kwargs, result.backend) == ([2], {"y": 3}, "default")
    assert result.enqueued_at == run.created_at and result.started_at is None
    assert (run.task, run.priority, run.max_attempts, run.labels) == (add.module_path, 5, 2, {})
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018
    fairshift.drain()
    result.refresh()
    assert (result.status, result.return_value, result.errors) == (STATUS.SUCCESSFUL, 5, [])
    assert result.is_finished and result.attempts == len(result.worker_ids) == 1
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert sent == ["task_enqueued", "task_started"]


def test_a_result_is_found_by_its_id(acme: Owner) -> None:
    """As it was enqueued; not one of another task, another backend, or no task of Django's."""
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    changed = add.using(priority=-7, queue_name="default", run_after=None)
    result = changed.enqueue(1)
    assert add.get_result(result.id) == result
    assert asyncio.iscoroutinefunction(add.aget_result)
    with pytest.raises(errors.TaskResultMismatch):
        later.get_result(result.id)
    with pytest.raises(errors.TaskResultDoesNotExist):
        add.using(backend="other").get_result(result.id)
    plain = submit("tests.add", owner=acme, x=1, y=2)
    for wrong in ("123", str(moment), "01987f3c-0000-7000-8000-000000000001", str(plain.id)):
        with pytest.raises(errors.TaskResultDoesNotExist):
            add.get_result(wrong)


def test_a_failure_has_the_errors_of_all_attempts(fairshift: Fairshift) -> None:
    """It is ready again between them; the context has the attempt, and a result that runs."""
    lost, mended = attempt.enqueue(fails=2), attempt.enqueue(fails=1)
    fairshift.drain()
    lost.refresh()
    assert (lost.status, lost.attempts) == (STATUS.READY, 1)
    fairshift.move_clock(timedelta(days=1))
    fairshift.drain()
    lost.refresh()
    mended.refresh()
    assert (lost.status, lost.attempts, len(lost.errors)) == (STATUS.FAILED, 2, 2)
    assert [error.exception_class for error in lost.errors] == [ValueError, ValueError]
    assert lost.errors[1].traceback.endswith("ValueError: attempt 2\n")
    with pytest.raises(ValueError, match="Task failed"):
        lost.return_value  # noqa: B018
    assert mended.return_value == [2, mended.id, "RUNNING"]


def test_what_ends_otherwise_has_failed(fairshift: Fairshift) -> None:
    """An exit, a value that JSON cannot hold, a cancel, and a start that came too late."""
    ended, bad, cancelled = exits.enqueue(), unstorable.enqueue(), add.enqueue(1)
    Run.objects.get(id=cancelled.id).cancel()
    for _ in range(2):
        fairshift.drain()
        fairshift.move_clock(timedelta(days=1))
    for result in (ended, bad, cancelled):
        result.refresh()
        assert result.status == STATUS.FAILED and result.is_finished
    assert ended.errors[0].exception_class is SystemExit
    assert bad.errors[0].exception_class is TypeError
    assert "Unsupported type" in bad.errors[0].traceback
    assert (cancelled.errors, cancelled.attempts) == ([], 0)


def test_deferred_and_async_tasks(fairshift: Fairshift) -> None:
    """The flags are true, as these work."""
    backend = add.get_backend()
    assert backend.supports_defer and backend.supports_async_task
    assert backend.supports_get_result and backend.supports_priority
    deferred = later.using(run_after=fairshift.now() + timedelta(hours=1)).enqueue(4)
    assert fairshift.drain() == 0
    fairshift.move_clock(timedelta(hours=2))
    assert fairshift.drain() == 1
    deferred.refresh()
    assert deferred.return_value == 4
    assert later.get_result(deferred.id).task.run_after == deferred.task.run_after


def test_higher_priorities_run_first(fairshift: Fairshift) -> None:
    """-100 to 100 become 0 to 9: 0 is 5, and a sign is never lost."""
    low, high = add.using(priority=-1).enqueue(1), add.using(priority=1).enqueue(1)
    fairshift.drain()
    low.refresh()
    high.refresh()
    assert high.finished_at < low.finished_at
    found = [django_tasks.run_priority(given) for given in (-100, -99, -1, 0, 1, 99, 100)]
    assert found == [0, 0, 4, 5, 6, 9, 9]


def test_owners_are_named_by_task_options_or_run(fairshift: Fairshift, northwind: Owner) -> None:
    """In this order; without one nothing is stored."""
    result = add.using(owner="northwind").enqueue(1)
    [run] = fairshift.submitted(owner=northwind)
    assert add.get_result(result.id).task.owner == "northwind"
    with pytest.raises(OptionError, match=r"'other'.*or with add\.using"):
        add.using(backend="other").enqueue(1)
    assert fairshift.submitted() == [run]
    parent = child.using(owner="northwind").enqueue()
    fairshift.drain()
    parent.refresh()
    inner = add.using(backend="other").get_result(parent.return_value)
    assert (inner.return_value, inner.task.owner) == (6, "northwind")


def test_bad_calls_are_refused_before_they_are_stored(fairshift: Fairshift) -> None:
    """With Django's errors."""
    with pytest.raises(TypeError, match="Unsupported type"):
        add.enqueue(datetime.now(UTC))
    with pytest.raises(INVALID, match="not valid for backend"):
        add.using(queue_name="nowhere")
    with pytest.raises(INVALID, match="aware"):
        add.using(run_after=datetime(2030, 1, 1))  # noqa: DTZ001
    with pytest.raises(INVALID, match="whole number"):
        add.using(priority=101)
    assert fairshift.submitted() == []


def test_misspelt_options_of_the_backend_are_refused(settings: Settings) -> None:
    """At its first use."""
    settings.TASKS = {"default": {**TASKS["default"], "OPTIONS": {"ownr": "acme"}}}
    with pytest.raises(OptionError, match="has ownr; known are max_attempts, owner, queues"):
        api.task_backends["default"]


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("ValueError", "Traceback\n  File x\nValueError: no: x\n", "builtins.ValueError"),
        ("Bad", "Traceback\n  x\nshop.errors.Bad: no\nmore text\n", "shop.errors.Bad"),
        ("Bad", "Traceback\n  x\nshop.errors.Bad\n", "shop.errors.Bad"),
        ("WorkerLostError", "", "builtins.WorkerLostError"),
    ],
)
def test_an_error_s_class_is_in_its_traceback(name: str, text: str, path: str) -> None:
    """Its row has the bare name."""
    assert django_tasks.error_path(name, text) == path
