"""Each rule of the judge finds the defect that it is for, planted in a scene that is clean else.

A judge that finds too much fails the scenes that it judges; one that finds too little fails here.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.judge.rows import HistoryEntry
from tests.judge.scene import NOON, WORKER, Scene


@pytest.fixture
def scene() -> Scene:
    """A scene in which an ordinary run of another owner has already succeeded."""
    scene = Scene()
    scene.run("stranger-1").start().succeed()
    return scene


@pytest.mark.parametrize("state", ["queued", "held", "scheduled", "retrying"])
def test_a_run_that_has_not_ended_is_lost(scene: Scene, state: str) -> None:
    """A scene at rest has no open runs."""
    run = scene.run()
    if state == "retrying":
        run.start().lose()
    elif state != "queued":
        scene.change(run, history=())
        run.move(state)
    assert scene.facts("lost") == f"not ended: {state}"
    assert scene.found() == {"lost"}


def test_a_committed_run_without_a_row_is_lost(scene: Scene) -> None:
    """The submitter was told that it is there."""
    del scene.runs[scene.run("acme-1").id]
    assert scene.facts("lost") == "committed by submit acme-1, has no row"


def test_a_rolled_back_run_that_exists_is_a_ghost(scene: Scene) -> None:
    """The ids noted before COMMIT convict, also when `failed` names none."""
    run = scene.run().start().succeed()
    del scene.submit_events[-1]
    scene.say("failed", "acme-1", ids=(run.id,), total=1)
    assert "was rolled back" in scene.facts("ghosts")
    scene.submit_events.pop()
    scene.say("prepared", "acme-1", ids=(run.id,), total=1)
    scene.say("failed", "acme-1")
    assert scene.found() == {"ghosts"}


def test_a_row_without_a_submit_is_a_ghost(scene: Scene) -> None:
    """Each row belongs to an intended submit. One that is unknown explains its own runs alone."""
    for key in ("acme-1", "acme-2"):
        scene.run(key).start().succeed()
    del scene.submit_events[-3:]
    assert scene.found() == {"ghosts"}
    scene.submit_events.pop()
    assert scene.found() == {"ghosts"}


def test_an_unknown_submit_half_there_is_torn(scene: Scene) -> None:
    """Three runs of a transaction are there together or not at all."""
    stories = scene.submit("acme-3", runs=3)
    ids = tuple(story.start().succeed().id for story in stories)
    scene.submit_events[-1] = replace(scene.submit_events[-1], event="prepared")
    assert scene.judged().ok
    del scene.runs[ids[0]]
    assert scene.facts("torn") == "2 of 3 runs exist"


def test_one_key_gives_one_run(scene: Scene) -> None:
    """A caller that asks twice under one key gets the same run twice."""
    first, second = scene.run("acme-1"), scene.run("acme-2")
    for story in (first, second):
        story.start().succeed()
    scene.submit_events[-2:] = [replace(scene.submit_events[-1], key="acme-1")]
    assert scene.facts("torn") == "2 ids for 1 runs"


def test_each_lost_lease_explains_one_start(scene: Scene) -> None:
    """Starts ≤ 1 + lost leases: three starts with one loss are one too many."""
    run = scene.run().start().lose().start().succeed()
    scene.log("start", pid=900, run=run.id, token=2)
    assert "3 starts, 1 lost leases" in scene.facts("excess_starts")


def test_two_bodies_at_once_overlap(scene: Scene) -> None:
    """A live run is not started again, and a kill after the second start is no reason for it."""
    run = scene.run().start()
    first_pid = run.pid
    run.lose().start()
    scene.log("end", pid=first_pid, run=run.id, token=1, outcome="returned")
    run.succeed()
    scene.log("killed", pid=WORKER)
    assert "token 1 (pid 102) was alive when token 2" in scene.facts("overlaps")
    assert scene.found() == {"overlaps"}


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


def test_each_token_has_one_attempt_and_the_newest_has_the_outcome(scene: Scene) -> None:
    """A token without an attempt was lost; an outcome of another token is a stale one's."""
    run = scene.run().start().fail(again=True).start().succeed()
    scene.change(run, outcome_token=3)
    assert scene.facts("stale") == "outcome of token 3, row is at 2"
    scene.change(run, outcome_token=2)
    del scene.attempts[-2]
    assert scene.facts("attempts") == "token 1 has 0 attempts"


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


def test_tokens_rise_with_the_starts(scene: Scene) -> None:
    """A later start has a higher token."""
    scene.run().start().fail(again=True).start().fail()
    swapped: dict[int | None, int] = {1: 2, 2: 1}
    scene.task_events[2:] = [
        replace(event, token=swapped[event.token]) for event in scene.task_events[2:]
    ]
    assert scene.facts("tokens") == "token 1 started after token 2"
    assert scene.found() == {"tokens"}


def test_an_attempt_that_did_nothing_is_not_spent(scene: Scene) -> None:
    """Its window closed when its process was about to begin; another one must be counted."""
    run = scene.run().accept()._close("retrying", then="retrying").start().succeed()
    history = tuple(
        replace(entry, cause="not begun") if entry.state == "retrying" else entry
        for entry in run.row.history
    )
    scene.change(run, history=history, attempt_count=0)
    assert scene.found() == {"attempts"}
