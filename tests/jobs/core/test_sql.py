"""jobs/core/sql.py: a verb that runs once at a time in the whole installation."""

from collections.abc import Callable
from typing import Any

from jobs.core.sql import alone
from tests.jobs.scenes import at_once


def verb(module: str, act: Callable[[], Any]) -> Callable[[], Any]:
    """Return the verb `work` of a module."""

    def work() -> Any:
        return act()

    work.__module__, work.__qualname__ = module, "work"
    return alone(work)


def test_a_verb_runs_once_at_a_time(committed: None) -> None:
    """A call that meets another one returns None; a verb of another module is another verb."""
    same = verb("one", lambda: ["same"])
    other = verb("two", lambda: ["other"])
    outer = verb("one", lambda: at_once(same, other))
    assert outer() == [None, ["other"]]
    assert outer() == [None, ["other"]]
