"""Rules about records: outcomes, histories, tokens and attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.judge.log import TaskEvent
from tests.judge.rows import HistoryEntry
from tests.judge.scene import NOON, Scene


@pytest.mark.parametrize(
    ("place", "change", "kind", "fact"),
    [
        (-1, {"outcome": "worker lost"}, "stale", "succeeded, but token 2 ended as worker lost"),
        (-2, {"outcome": "failed"}, "stale", "nobody asked"),
        (-2, {"started_at": NOON + timedelta(hours=1)}, "tokens", "token 2 started before token 1"),
    ],
)
def test_an_attempt_that_denies_its_row_is_found(
    scene: Scene, place: int, change: dict[str, Any], kind: str, fact: str
) -> None:
    """The newest one succeeded, only an operator overrides a failure, starts follow tokens."""
    scene.run().start().fail(again=True).start().succeed()
    scene.change_attempt(place, **change)
    assert fact in scene.facts(kind)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("is_doubled", [False, True])
def test_a_move_that_is_missing_or_doubled_breaks_the_history(
    scene: Scene, place: int, *, is_doubled: bool
) -> None:
    """Every move is recorded exactly once: otherwise the history does not replay."""
    run = scene.run().start().succeed()
    history = run.row.history
    twice = history[place : place + 1] * (2 if is_doubled else 0)
    scene.change(run, history=history[:place] + twice + history[place + 1 :])
    assert scene.found() == {"history"}


def test_time_does_not_go_backwards(scene: Scene) -> None:
    """Moves are stamped by one clock, in order."""
    run = scene.run().start().succeed()
    *earlier, last = run.row.history
    scene.change(run, history=(*earlier, HistoryEntry(last.state, 0.0)))
    assert scene.facts("history") == "times of the history go backwards"


def swap_tokens(scene: Scene) -> None:
    swapped = {1: 2, 2: 1}
    scene.task_events[2:] = [
        replace(event, token=swapped[event.token]) for event in scene.task_events[2:]
    ]


def test_tokens_rise_with_the_starts(scene: Scene) -> None:
    """A later start has a higher token."""
    scene.run().start().fail(again=True).start().fail()
    swap_tokens(scene)
    assert scene.facts("tokens") == "token 1 started after token 2"
    assert scene.found() == {"tokens"}


def test_a_frozen_process_may_start_late(scene: Scene) -> None:
    """Thawed after its lease it starts with an old token: useless, and no defect."""
    run = scene.run().admit().lose().start()
    scene.log("start", pid=900, run=run.id, token=1)
    run.succeed()
    assert scene.found() == {"overlaps", "tokens"}
    frozen = TaskEvent(event="frozen", pid=900, position=-1)
    scene.task_events.insert(0, frozen)
    assert scene.judged().ok


@pytest.mark.parametrize(("spent", "found"), [(1, set()), (2, set()), (0, {"attempts"})])
def test_an_attempt_that_did_nothing_is_not_spent(
    scene: Scene, spent: int, found: set[str]
) -> None:
    """Its window closed when its process was about to begin; an older row counts it."""
    run = scene.run().accept()._close("retrying", then="retrying").start().succeed()
    history = tuple(
        replace(entry, cause="not begun") if entry.state == "retrying" else entry
        for entry in run.row.history
    )
    scene.change(run, history=history, attempt_count=spent)
    assert scene.found() == found
