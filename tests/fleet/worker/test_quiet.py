"""fleet/worker/quiet.py: Celery's lines of durable runs have no values of the task."""

import logging

import pytest

from fleet.worker.quiet import TRACE, HidesValues


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
