"""Rules about records: outcomes, histories, tokens and attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.judge.log import TaskEvent
from tests.judge.rows import HistoryEntry
from tests.judge.scene import NOON, Scene


def test_the_outcome_of_an_older_token_is_stale(scene: Scene) -> None:
    """The result names its token: it must be the newest."""
    scene.change(scene.run().start().lose().start().succeed(), outcome_token=1)
    assert scene.facts("stale") == "outcome of token 1, row is at 2"
    assert scene.found() == {"stale"}


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


def test_an_attempt_after_success_is_stale(scene: Scene) -> None:
    """Nothing comes after success."""
    scene.run().start().lose().start().succeed()
    scene.change_attempt(-2, outcome="succeeded")
    assert scene.facts("stale") == "token 1 succeeded, row is at 2"


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_success_that_was_overruled_is_stale(scene: Scene, state: str) -> None:
    """Asked to stop, a task may finish first: then its outcome stands."""
    run = scene.run().start().cancel()
    if state == "failed":
        *earlier, last = run.row.history
        scene.change(run, state=state, history=(*earlier, replace(last, state=state)))
    scene.change_attempt(-1, outcome="succeeded")
    assert f"{state}, but token 1 succeeded" in scene.facts("stale")


def test_success_that_the_task_log_denies_is_stale(scene: Scene) -> None:
    """The rows say succeeded; the body logged that it raised."""
    scene.run().start().succeed()
    scene.task_events[-1] = replace(scene.task_events[-1], outcome="raised ValueError")
    assert scene.facts("stale") == "succeeded, but token 1 never returned"
    assert scene.found() == {"stale"}


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


def test_a_history_that_ends_elsewhere_does_not_replay(scene: Scene) -> None:
    """The last entry is the row's state."""
    scene.change(scene.run().move("cancelled"), state="expired")
    assert scene.facts("history") == "history ends in cancelled, row says expired"


def test_an_unknown_state_breaks_the_history(scene: Scene) -> None:
    """States are the eleven of the design."""
    scene.run().move("napping").move("cancelled")
    assert scene.found() == {"history"}


def test_an_admission_that_gave_no_token_is_found(scene: Scene) -> None:
    """Each admission in the history handed out a token."""
    run = scene.run().move("admitted").move("queued").start().succeed()
    assert scene.facts("history") == "admitted 2 times, row is at token 1"
    assert run.row.token == 1
    assert scene.found() == {"history"}


def test_time_does_not_go_backwards(scene: Scene) -> None:
    """Moves are stamped by one clock, in order."""
    run = scene.run().start().succeed()
    *earlier, last = run.row.history
    scene.change(run, history=(*earlier, HistoryEntry(last.state, 0.0)))
    assert scene.facts("history") == "times of the history go backwards"


def test_a_row_behind_its_attempts_is_found(scene: Scene) -> None:
    """A token that an attempt holds was issued by the row."""
    run = scene.run().start().lose().start().succeed()
    scene.change(run, token=1, outcome_token=1, attempt_count=1)
    assert "row is at token 1, an attempt has 2" in scene.facts("tokens")


def test_a_token_that_was_never_issued_is_found(scene: Scene) -> None:
    """No body runs with a token above the row's."""
    scene.run().start().succeed()
    scene.task_events[-2:] = [replace(event, token=5) for event in scene.task_events[-2:]]
    assert "started with token 5, row is at 1" in scene.facts("tokens")


def test_a_token_used_twice_is_found(scene: Scene) -> None:
    """One token, one start."""
    run = scene.run().start().succeed()
    scene.log("start", pid=900, run=run.id, token=1)
    assert scene.facts("tokens") == "two starts with token 1"


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


def test_attempts_out_of_order_are_found(scene: Scene) -> None:
    """Attempts are numbered and started in the order of their tokens."""
    scene.run().start().fail(again=True).start().succeed()
    scene.change_attempt(-2, number=2)
    scene.change_attempt(-1, number=1)
    assert scene.facts("tokens") == "numbers of the attempts fall 1 times"


def test_attempts_number_on_through_a_retry_by_an_operator(scene: Scene) -> None:
    """A set of attempts that is numbered from 1 again is found."""
    scene.run().start().fail().reopen().start().succeed()
    assert scene.judged().ok
    scene.change_attempt(-1, number=0)
    assert scene.facts("tokens") == "numbers of the attempts fall 1 times"


def test_a_missing_attempt_is_found(scene: Scene) -> None:
    """Each token leaves an attempt."""
    scene.run().start().lose().start().succeed()
    del scene.attempts[-2]
    assert scene.facts("attempts") == "token 1 has 0 attempts"


def test_a_doubled_attempt_is_found(scene: Scene) -> None:
    """Each token leaves one attempt."""
    scene.run().start().fail()
    scene.attempts.append(scene.attempts[-1])
    assert scene.facts("attempts") == "token 1 has 2 attempts"


def test_a_start_that_was_given_back_is_found(scene: Scene) -> None:
    """Given back means that the body never began."""
    run = scene.run().admit().give_back().start().succeed()
    scene.log("start", pid=900, run=run.id, token=1)
    assert "token 1 was given back and yet started" in scene.facts("attempts")


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


@pytest.mark.parametrize("claimed", [0, 3])
def test_a_wrong_count_of_attempts_is_found(scene: Scene, claimed: int) -> None:
    """attempt_count counts the tokens, less those given back."""
    scene.change(scene.run().start().lose().start().succeed(), attempt_count=claimed)
    assert scene.facts("attempts") == f"attempt_count {claimed} at token 2"
    assert scene.found() == {"attempts"}


def test_attempts_of_nobody_are_found(scene: Scene) -> None:
    """An attempt belongs to a run."""
    run = scene.run().start().fail()
    del scene.runs[run.id]
    assert scene.facts("attempts") == "attempts without a run"
