"""jobs/tasks.py: the system's own rounds, each one at a time, and those that the pulse sends."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fleet.broker.inbox import lists
from jobs import tasks
from jobs.models import Owner
from jobs.runs.dispatch import broker
from jobs.system import promotion, rescue
from tests.jobs.scenes import at_once
from tests.jobs.system.notices.scenes import endpoint

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


def sent_by_pulse() -> list[str]:
    """Let the pulse beat, and return what it has sent, without ticks."""
    with broker().client(timeout=5) as client:
        client.flushdb()
    tasks.pulse()
    names = broker().waiting_tasks("system", timeout=5)
    return sorted(name.removeprefix("fairshift.system.") for name in names - {tasks.tick.name})


def test_the_pulse_sends_rounds_that_have_work(committed: None, acme: Owner) -> None:
    """No other: an idle installation has no message for them. They stand behind ticks."""
    assert sent_by_pulse() == []
    endpoint(acme, "https://example.org/")
    assert sent_by_pulse() == ["notify"]
    with broker().client(timeout=5) as client:
        last = lists("system")[-1]
        assert client.llen(last) == 1


@pytest.mark.usefixtures("committed")
def test_one_message_of_a_round_waits_at_most(acme: Owner) -> None:
    """While no worker takes them. None expires: Celery would have the worker's clock decide."""
    endpoint(acme, "https://example.org/")
    assert sent_by_pulse() == ["notify"]
    tasks.pulse()
    with broker().client(timeout=5) as client:
        [message] = client.lrange(lists("system")[-1], 0, -1)
    assert json.loads(message)["headers"]["expires"] is None


def test_rounds_are_sent_though_ticks_or_the_inbox_fail(
    committed: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of one kind of work keeps no other waiting."""

    def fail() -> None:
        raise ValueError("no ticks, and no calls")

    endpoint(acme, "https://example.org/")
    monkeypatch.setattr(tasks, "make_ticks", fail)
    monkeypatch.setitem(tasks._IF_DUE, tasks.read_inbox, fail)
    with pytest.raises(ValueError, match="no ticks"):
        tasks.pulse()
    assert broker().waiting_tasks("system", timeout=5) == {tasks.notify.name}
