"""Rules about starts: excess, overlaps, and their excuses."""

import pytest

from tests.judge.scene import WORKER, Scene


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


def test_a_kill_afterwards_excuses_nobody(scene: Scene) -> None:
    """An event after the second start cannot be its reason."""
    overlapping(scene)
    scene.log("killed", pid=WORKER)
    assert scene.found() == {"overlaps"}
