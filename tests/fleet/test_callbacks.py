"""fleet/callbacks.py: an error of a callback does not reach the event loop."""

import pytest
from celery.exceptions import WorkerShutdown

from fleet.callbacks import guarded


def test_an_error_is_logged_once_a_minute_for_each_callback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By the callback's name; the others have lines of their own."""

    def first() -> None:
        raise OSError(24, "Too many open files")

    def second() -> None:
        raise KeyError("x")

    for callback in (first, second, first, first):
        assert guarded(callback)() is None
    lines = [line.getMessage() for line in caplog.records]
    assert len(lines) == 2
    assert "first failed, and the worker goes on: OSError(24" in lines[0]
    assert "second failed" in lines[1]


def test_results_and_the_end_of_the_worker_pass() -> None:
    """Celery ends a worker by an exception that is no error."""

    def end() -> None:
        raise WorkerShutdown(0)

    assert guarded(lambda x: x + 1)(1) == 2
    with pytest.raises(WorkerShutdown):
        guarded(end)()
