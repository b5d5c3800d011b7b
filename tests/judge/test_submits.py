"""Rules about submits: lost runs, ghosts, torn submits."""

from dataclasses import replace

import pytest

from tests.judge.scene import Scene


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


def test_a_rolled_back_run_that_exists_is_a_ghost(scene: Scene) -> None:
    """Rolled back is never visible."""
    run = scene.run().start().succeed()
    del scene.submit_events[-1]
    scene.say("failed", "acme-1", ids=(run.id,), total=1)
    assert "was rolled back" in scene.facts("ghosts")
    assert scene.found() == {"ghosts"}


def test_ids_in_hand_before_the_rollback_are_enough(scene: Scene) -> None:
    """The ids noted before COMMIT convict, also when `failed` names none."""
    run = scene.run().start().succeed()
    del scene.submit_events[-1]
    scene.say("prepared", "acme-1", ids=(run.id,), total=1)
    scene.say("failed", "acme-1")
    assert scene.found() == {"ghosts"}


def test_a_row_without_a_submit_is_a_ghost(scene: Scene) -> None:
    """Each row belongs to an intended submit."""
    scene.run().start().succeed()
    del scene.submit_events[-2:]
    assert scene.found() == {"ghosts"}


def test_an_unknown_submit_may_be_fully_there(scene: Scene) -> None:
    """Killed after COMMIT and before its ok: the runs may exist, and then they must end."""
    for story in scene.submit("acme-3", runs=3):
        story.start().succeed()
    del scene.submit_events[-1]
    assert scene.judged().ok
    scene.run("open")
    del scene.submit_events[-1]
    assert scene.found() == {"lost"}


def test_an_unknown_submit_half_there_is_torn(scene: Scene) -> None:
    """Three runs of a transaction are there together or not at all."""
    stories = scene.submit("acme-3", runs=3)
    ids = tuple(story.start().succeed().id for story in stories)
    scene.submit_events[-1] = replace(scene.submit_events[-1], event="prepared")
    assert scene.judged().ok
    del scene.runs[ids[0]]
    assert scene.facts("torn") == "2 of 3 runs exist"


def test_more_rows_than_unknown_submits_explain_are_ghosts(scene: Scene) -> None:
    """One submitter that wrote nothing down explains its own runs, and no more."""
    for key in ("acme-1", "acme-2"):
        scene.run(key).start().succeed()
    del scene.submit_events[-3:]
    assert scene.found() == {"ghosts"}


def test_one_key_gives_one_run(scene: Scene) -> None:
    """A caller that asks twice under one key gets the same run twice."""
    first, second = scene.run("acme-1"), scene.run("acme-2")
    for story in (first, second):
        story.start().succeed()
    scene.submit_events[-2:] = [replace(scene.submit_events[-1], key="acme-1")]
    assert scene.facts("torn") == "2 ids for 1 runs"


def test_a_failed_submit_may_be_tried_again(scene: Scene) -> None:
    """After a second intent its outcome is unknown until it is logged."""
    run = scene.run().start().succeed()
    scene.submit_events[-1:] = [
        replace(scene.submit_events[-1], event="failed", ids=(), total=0),
        scene.submit_events[-2],
        replace(scene.submit_events[-1], event="prepared"),
    ]
    assert scene.judged().ok
    scene.say("ok", "acme-1", ids=(run.id,), total=1)
    assert scene.judged().ok
