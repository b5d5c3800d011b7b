"""fleet/worker/quiet.py: Celery's lines: without a run's values, and none of quiet tasks."""

import logging

import pytest

from fleet.worker.quiet import TRACE, HidesTasks, HidesValues


@pytest.mark.parametrize("is_run", [True, False])
def test_an_error_keeps_its_class_only(is_run: bool) -> None:
    """A plain task's line stays as Celery writes it."""
    try:
        raise ValueError("canary")
    except ValueError as error:
        about = (ValueError, error, error.__traceback__)
    facts = {"name": "a.b", "exc": "ValueError('canary')", "args": "['canary']", "traceback": "x"}
    text = "Task %(name)s raised: %(exc)s %(args)s"
    record = logging.LogRecord(TRACE, 40, "", 1, text, (facts,), about)
    record.data = facts
    assert HidesValues(lambda: is_run).filter(record)
    line = logging.Formatter().format(record) + str(record.data)
    assert ("canary" in line) != is_run
    assert "Task a.b raised: ValueError" in line


@pytest.mark.parametrize(
    ("name", "level", "is_shown"),
    [("own.round", "INFO", False), ("own.round", "WARNING", True), ("a.b", "INFO", True)],
)
def test_lines_of_quiet_tasks_are_hidden_but_for_trouble(
    name: str, level: str, is_shown: bool
) -> None:
    """Celery's lines have the task's name among their facts; others have no facts."""
    facts = {"name": name, "id": "1"}
    record = logging.LogRecord(TRACE, getattr(logging, level), "", 1, "%(name)s", (facts,), None)
    assert HidesTasks("own.").filter(record) == is_shown
    record = logging.LogRecord(TRACE, logging.INFO, "", 1, "own.round", (), None)
    assert HidesTasks("own.").filter(record)
