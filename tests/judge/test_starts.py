"""Rules about starts: excess, overlaps, and their excuses."""

import pytest

from tests.judge.scene import WORKER, Scene


def test_a_second_start_without_a_reason_is_excess(scene: Scene) -> None:
    """Without a fault a run starts exactly once."""
    run = scene.run().start().succeed()
    scene.log("start", pid=900, run=run.id, token=1)
    assert scene.facts("excess_starts") == "2 starts, 0 lost leases, 0 retries"
    assert scene.found() == {"excess_starts", "tokens"}


def test_each_lost_lease_explains_one_start(scene: Scene) -> None:
    """Starts ≤ 1 + lost leases: two starts with one loss are fine, three are not."""
    run = scene.run().start().lose().start().succeed()
    assert scene.judged().ok
    scene.log("start", pid=900, run=run.id, token=2)
    assert "3 starts, 1 lost leases" in scene.facts("excess_starts")


def overlapping(scene: Scene, *disturbance: tuple[str, int]) -> None:
    """Let a run be rescued while its first body is alive and these disturbances happened."""
    run = scene.run().start()
    first_pid = run.pid
    for how, pid in disturbance:
        scene.log(how, pid=pid)
    run.lose().start()
    scene.log("end", pid=first_pid, run=run.id, token=1, outcome="returned")
    run.succeed()


def test_two_bodies_at_once_overlap(scene: Scene) -> None:
    """A live run is not started again, whatever the rows say of its worker."""
    overlapping(scene)
    assert "token 1 (pid 102) was alive when token 2" in scene.facts("overlaps")
    assert scene.found() == {"overlaps"}


@pytest.mark.parametrize("pid", [102, WORKER])
@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_a_disturbed_process_may_overlap(scene: Scene, how: str, pid: int) -> None:
    """Frozen past its lease, or an orphan of a killed worker: fenced, so it may overlap."""
    overlapping(scene, (how, pid))
    assert scene.judged().ok


def test_a_stranger_frozen_excuses_nobody(scene: Scene) -> None:
    """Only the process itself or its worker counts."""
    overlapping(scene, ("frozen", 999))
    assert scene.found() == {"overlaps"}


def test_a_worker_frozen_before_the_start_is_excused() -> None:
    """Its child may start an earlier job: it is an orphan in all but name."""
    scene = Scene()
    scene.log("frozen", pid=WORKER)
    overlapping(scene)
    assert scene.judged().ok


def test_a_kill_afterwards_excuses_nobody(scene: Scene) -> None:
    """An event after the second start cannot be its reason."""
    overlapping(scene)
    scene.log("killed", pid=WORKER)
    assert scene.found() == {"overlaps"}


def test_a_freeze_that_was_over_excuses_nobody() -> None:
    """Frozen and thawed before the run began is no excuse."""
    scene = Scene()
    scene.log("frozen", pid=WORKER)
    scene.log("thawed", pid=WORKER)
    overlapping(scene)
    assert scene.found() == {"overlaps"}


def test_a_body_that_never_ended_needs_a_reason(scene: Scene) -> None:
    """A body without an end was killed, or the next one overlaps it."""
    scene.run().start().fail(again=True).start().succeed()
    del scene.task_events[-3]
    assert "never ended" in scene.facts("overlaps")
