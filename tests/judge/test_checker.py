"""The judge over whole scenes, and its report."""

from tests.judge.scene import Scene


def test_a_clean_scene_is_clean(scene: Scene) -> None:
    """Everything that is allowed to happen happens, and nothing is found."""
    scene.run("once").start().succeed()
    scene.run("failed").start().fail()
    scene.run("tried again").start().fail(again=True).start().succeed()
    scene.run("worker lost").start().lose().start().succeed()
    scene.run("poison").start().lose("child lost").start().lose("child lost", again=False)
    scene.run("too long").start().lose("time limit", again=False)
    scene.run("lost before its start").admit().lose().start().succeed()
    scene.run("given back").admit().give_back().start().succeed()
    scene.run("cancelled early").cancel()
    scene.run("cancelled late").start().cancel()
    scene.run("expired").move("expired")
    scene.run("by hand").start().lose().start().fail().reopen().start().succeed()
    scene.run("died early").accept().lose("child lost", again=False)
    scene.say("intend", "rolled back", count=2)
    scene.say("failed", "rolled back", ids=("run-never-1", "run-never-2"), total=2)
    scene.say("intend", "killed before its commit", count=5)
    verdict = scene.judged()
    assert verdict.ok, verdict.report()
    assert verdict.figures == {
        "submits": 16,
        "runs": 14,
        "starts": 16,
        "lost leases": 7,
        "retries": 1,
    }


def test_the_report_names_the_first_ten(scene: Scene) -> None:
    """Ten of each kind with their ids, then how many more."""
    ids = [scene.run(f"acme-{number}").id for number in range(12)]
    report = scene.judged().report()
    assert report.startswith("verdict: BAD (13 submits, 13 runs, 1 starts,")
    assert "lost: 12\n" in report
    assert all(f"  {run_id}  not ended: queued" in report for run_id in ids[:10])
    assert ids[10] not in report
    assert report.endswith("and 2 more")
