"""fleet/worker/child.py: a task's process finds out how it ended, whatever the task does."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from celery import Task

from fleet import Kind
from fleet.worker import child
from tests.fleet.children import Child
from tests.tasks import SpeechlessError, UnloadableError, UnpicklableError


def fail() -> None:
    raise ValueError("the device said no")


def succeed() -> int:
    return 1


@pytest.mark.parametrize(
    ("limit", "error_type"),
    [("closes_at", "WindowClosed"), ("begins_by", "NotBegun")],
    ids=["its window has closed", "its process was frozen"],
)
def test_what_comes_too_late_does_nothing(pool: Child, limit: str, error_type: str) -> None:
    """Not even a last attempt is lost by that; until its limit it begins as usual."""
    begun: list[int] = []

    def begin(number: int) -> None:
        begun.append(number)

    past: dict[str, Any] = {limit: time.monotonic() - 0.001}
    report, error = pool.fly(begin, 1, attempt=3, **past)
    assert (report.kind, report.delay, report.error_type) == (Kind.RETRYING, 0, error_type)
    assert (report.cause, type(error).__name__, begun) == ("not begun", "Retry", [])
    to_come: dict[str, Any] = {limit: time.monotonic() + 60}
    report, _ = pool.fly(begin, 2, **to_come)
    assert (report.kind, begun) == (Kind.SUCCEEDED, [2])


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ({"give_up_on": ["ValueError"]}, Kind.FAILED),
        ({"give_up_on": ["Exception"]}, Kind.FAILED),
        ({"retry_on": ["OSError"]}, Kind.FAILED),
        ({"retry_on": ["builtins.ValueError"]}, Kind.RETRYING),
    ],
)
def test_the_policy_knows_the_error_by_its_class(
    pool: Child, policy: dict[str, Any], kind: Kind
) -> None:
    """Or by a parent's."""
    assert pool.fly(fail, **policy)[0].kind is kind


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError()]
)
def test_what_would_end_the_process_ends_the_attempt_only(
    pool: Child, error: BaseException
) -> None:
    """Celery would leave the child with it, or the worker."""

    def leave() -> None:
        raise error

    report, seen = pool.fly(leave, attempt=3)
    assert (report.kind, report.error_type) == (Kind.FAILED, type(error).__name__)
    assert type(seen).__name__ == "TaskExited"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (UnpicklableError, "holds a lock"),
        (lambda: UnloadableError("one", "two"), "one two"),
        (SpeechlessError, "its text could not be read"),
        (lambda: ValueError("x" * 1_000_000), "characters left out"),
        (lambda: ValueError("nul \x00 and \ud800"), "nul \ufffd and ?"),
    ],
)
@pytest.mark.parametrize("attempt", [1, 3])
def test_an_error_of_any_shape_is_told_in_safe_text(
    pool: Child, make: Callable[[], BaseException], text: str, attempt: int
) -> None:
    """In an attempt that is retried and in the last one."""

    def break_down() -> None:
        raise make()

    report, _ = pool.fly(break_down, attempt=attempt)
    assert text in report.error_message
    assert len(report.error_message) < 2_100 and len(report.traceback) < 16_100


@pytest.mark.parametrize("result", [{1, 2}, object(), float("nan"), "x" * 10_000_000])
def test_a_result_that_cannot_be_kept_is_a_failure(pool: Child, result: Any) -> None:
    """It names the problem; Celery does not see a success."""

    def give() -> Any:
        return result

    report, error = pool.fly(give, attempt=3)
    assert (report.kind, report.error_type) == (Kind.FAILED, "ResultError")
    assert "the task's result cannot be kept" in report.error_message
    assert type(error).__name__ == "ResultError"


def test_only_the_outermost_call_is_the_run(pool: Child) -> None:
    """Calling another task's function, or its own again, decides nothing."""
    inner = pool.task(fail)

    def outer(self: Task, depth: int) -> str:
        if depth:
            return str(self.run(depth - 1))
        with pytest.raises(ValueError, match="said no"):
            inner()
        return "done"

    report, _ = pool.fly(pool.task(outer, bind=True), 3)
    assert (report.kind, report.result) == (Kind.SUCCEEDED, b'"done"')
    assert pool.cleaned_count == 1


def test_a_plain_task_leaves_its_process_clean(pool: Child) -> None:
    """Once, after the message's own task, not after those that it calls."""

    def outer(self: Task, depth: int) -> str:
        if depth:
            return str(self.run(depth - 1))
        with pytest.raises(ValueError, match="said no"):
            pool.task(fail)()
        assert pool.task(succeed).apply().result == 1
        assert pool.cleaned_count == 0
        return "done"

    failed, value = pool.receive(pool.task(outer, bind=True), 2)
    assert not failed, value
    assert pool.cleaned_count == 1
    failed, _ = pool.receive(pool.task(fail))
    assert failed and pool.cleaned_count == 2


async def never() -> int:
    return 1


def test_what_nothing_awaits_fails(pool: Child) -> None:
    """Plain and durable, at once: a coroutine that is made and dropped is no success."""
    task = pool.task(never)
    failed, value = pool.receive(task)
    assert failed and "async_to_sync" in str(value.exception)
    report, error = pool.fly(task)
    assert (report.kind, report.error_type) == (Kind.FAILED, "NeverAwaited")
    assert task.name in str(error)


@pytest.mark.parametrize("when", ["in the body", "in settling"])
def test_a_task_without_memory_is_tried_again(
    pool: Child, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """By its rule, also if there is none left to write its traceback with."""

    def run_out() -> None:
        kept = [bytes(1_000)]  # a real task holds much more
        raise MemoryError(len(kept))

    if when == "in settling":

        def none_left(_error: BaseException) -> str:
            raise MemoryError

        monkeypatch.setattr(child, "format_traceback", none_left)
    report, _ = pool.fly(run_out)
    assert report.kind is Kind.RETRYING and report.delay is not None
    report, _ = pool.fly(run_out, attempt=3)
    assert (report.kind, report.error_type) == (Kind.FAILED, "MemoryError")


def test_a_task_that_is_not_reached_has_failed(pool: Child) -> None:
    """Arguments that no longer fit after a deploy."""
    report, _ = pool.fly(succeed, "one too many", attempt=3)
    assert (report.kind, report.error_type) == (Kind.FAILED, "TypeError")


@pytest.mark.filterwarnings("ignore:Exception raised outside body:RuntimeWarning")
def test_a_callback_that_cannot_be_sent_is_a_failure(pool: Child) -> None:
    """As Celery stores it: the callback will not happen."""
    bad = {"task": "next", "args": [], "kwargs": {}, "options": {"serializer": "no such"}}
    report, error = pool.fly(succeed, callbacks=[{**bad, "subtask_type": None, "immutable": False}])
    assert report.kind is Kind.FAILED
    assert error is not None


def test_what_celery_never_called_has_not_succeeded(
    pool: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error around the task, before it begins: Celery's trace only logs it, and returns."""

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise ValueError("no context")

    monkeypatch.setattr("celery.app.trace.Context", broken)
    with pytest.warns(RuntimeWarning, match="no context"):
        report, error = pool.fly(succeed)
    assert (report.kind, report.error_type) == (Kind.FAILED, "NotReached")
    assert type(error).__name__ == "NotReached"
