"""jobs/tasks.py: the system's own rounds, each one at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs import tasks
from jobs.system import promotion, rescue
from tests.jobs.scenes import at_once

ROUNDS = [
    (tasks.promote, promotion, "expire"),
    (tasks.rescue, tasks, "rescue_runs"),
    (tasks.sweep, tasks, "sweep_hints"),
]


@pytest.mark.parametrize(("task", "module", "name"), ROUNDS)
def test_a_round_does_not_overtake_the_one_before_it(
    committed: None, monkeypatch: pytest.MonkeyPatch, task: Any, module: Any, name: str
) -> None:
    """It returns at once, from whatever process; afterwards the next one works again."""
    verb: Callable[[], Any] = getattr(module, name)
    seen: list[Any] = []

    def long_round() -> Any:
        if not seen:
            seen.append("began")
            seen.extend(at_once(task))
        return verb()

    monkeypatch.setattr(module, name, long_round)
    assert task() is not None
    assert seen == ["began", None]
    assert task() is not None


def test_a_round_that_fails_makes_way_for_the_next(
    committed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock goes with it."""
    with monkeypatch.context() as patch:
        patch.setattr(rescue, "CHUNK", "many")
        with pytest.raises(Exception, match="many"):
            tasks.rescue()
    assert at_once(tasks.rescue) == [0]
