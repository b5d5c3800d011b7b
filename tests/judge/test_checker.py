"""The judge finds each kind of broken promise, and only that kind."""

from dataclasses import replace

import pytest

from tests.judge.log import TaskEvent
from tests.judge.rows import HistoryEntry
from tests.judge.scene import WORKER, Scene


def found(scene: Scene) -> set[str]:
    return set(scene.judged().findings)


def facts(scene: Scene, kind: str) -> str:
    return "; ".join(finding.fact for finding in scene.judged().findings[kind])


@pytest.fixture
def scene() -> Scene:
    """A scene in which an ordinary run of another owner has already succeeded."""
    scene = Scene()
    scene.run("stranger-1").start().succeed()
    return scene


# A clean scene.


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


def test_an_empty_scene_is_clean() -> None:
    """No logs and no rows: nothing to find."""
    assert Scene().judged().ok


def test_plain_celery_calls_are_not_judged(scene: Scene) -> None:
    """A start without a run id is a task called without a row."""
    scene.log("start", pid=7)
    scene.log("end", pid=7, outcome="returned")
    assert scene.judged().ok


# Lost.


def test_a_committed_run_without_a_row_is_lost(scene: Scene) -> None:
    """What was confirmed to a submitter exists."""
    run = scene.run().start().succeed()
    del scene.runs[run.id]
    scene.attempts.pop()
    assert "has no row" in facts(scene, "lost")
    assert found(scene) == {"lost", "ghosts"}


@pytest.mark.parametrize("state", ["queued", "held", "scheduled", "retrying"])
def test_a_run_that_has_not_ended_is_lost(scene: Scene, state: str) -> None:
    """A scene at rest has no open runs."""
    run = scene.run()
    if state == "retrying":
        run.start().lose()
    elif state != "queued":
        scene.change(run, history=())
        run.move(state)
    assert facts(scene, "lost") == f"not ended: {state}"
    assert found(scene) == {"lost"}


def test_a_run_in_progress_is_lost_and_only_that(scene: Scene) -> None:
    """A try in progress has no attempt row yet, which is no second finding."""
    scene.run().start()
    assert found(scene) == {"lost"}


def test_success_without_a_start_is_lost(scene: Scene) -> None:
    """Who succeeded was started: the task's own log says so, not the row."""
    scene.run().start().succeed()
    del scene.task_events[-2:]
    assert facts(scene, "lost") == "succeeded without a start"
    assert found(scene) == {"lost", "stale"}


def test_failure_without_a_start_is_lost(scene: Scene) -> None:
    """A run does not fail of itself."""
    scene.run().admit().lose(again=False)
    assert facts(scene, "lost") == "failed without a start"


# Ghosts.


def test_a_rolled_back_run_that_exists_is_a_ghost(scene: Scene) -> None:
    """Rolled back is never visible."""
    run = scene.run().start().succeed()
    del scene.submit_events[-1]
    scene.say("failed", "acme-1", ids=(run.id,), total=1)
    assert "was rolled back" in facts(scene, "ghosts")
    assert found(scene) == {"ghosts"}


def test_ids_in_hand_before_the_rollback_are_enough(scene: Scene) -> None:
    """The ids noted before COMMIT convict, also when `failed` names none."""
    run = scene.run().start().succeed()
    del scene.submit_events[-1]
    scene.say("prepared", "acme-1", ids=(run.id,), total=1)
    scene.say("failed", "acme-1")
    assert found(scene) == {"ghosts"}


def test_a_row_with_the_key_of_a_failed_submit_is_a_ghost(scene: Scene) -> None:
    """A row may also be known by the key that it carries."""
    run = scene.run().start().succeed()
    del scene.submit_events[-1]
    scene.say("failed", "acme-1")
    scene.change(run, key="acme-1")
    assert facts(scene, "ghosts") == "exists, but submit acme-1 failed"


def test_a_run_without_a_row_is_a_ghost(scene: Scene) -> None:
    """Nothing runs that is not a row."""
    scene.log("start", pid=7, run="run-forged", token=1)
    assert facts(scene, "ghosts") == "ran 1 times without a row"


def test_a_row_without_a_submit_is_a_ghost(scene: Scene) -> None:
    """Each row belongs to a submit that somebody intended."""
    scene.run().start().succeed()
    del scene.submit_events[-2:]
    assert found(scene) == {"ghosts"}


def test_a_submit_killed_before_it_was_prepared_left_nothing(scene: Scene) -> None:
    """Who notes its ids before COMMIT and did not, has not committed."""
    scene.run().start().succeed()
    scene.submit_events[-2:] = [replace(scene.submit_events[-2], prepares=True)]
    assert found(scene) == {"ghosts"}


def test_a_row_with_the_key_of_a_submit_that_was_never_prepared_is_a_ghost(scene: Scene) -> None:
    """The key in the row names the submit that cannot have made it."""
    run = scene.run().start().succeed()
    scene.submit_events[-2:] = [replace(scene.submit_events[-2], prepares=True)]
    scene.change(run, key="acme-1")
    assert facts(scene, "ghosts").startswith("exists, but submit acme-1 never reached its COMMIT")


# Unknown submits.


def test_an_unknown_submit_may_be_fully_there(scene: Scene) -> None:
    """Killed after COMMIT and before its ok: the runs may exist, and then they must end."""
    for story in scene.submit("acme-3", runs=3):
        story.start().succeed()
    del scene.submit_events[-1]
    assert scene.judged().ok
    scene.run("open")
    del scene.submit_events[-1]
    assert found(scene) == {"lost"}


def test_an_unknown_submit_may_be_fully_absent(scene: Scene) -> None:
    """Killed before COMMIT: prepared ids need not exist."""
    scene.say("intend", "acme-3", count=2, prepares=True)
    scene.say("prepared", "acme-3", ids=("run-x", "run-y"), total=2)
    assert scene.judged().ok


def test_an_unknown_submit_half_there_is_torn(scene: Scene) -> None:
    """Three runs of a transaction are there together or not at all."""
    stories = scene.submit("acme-3", runs=3)
    ids = tuple(story.start().succeed().id for story in stories)
    scene.submit_events[-1] = replace(scene.submit_events[-1], event="prepared")
    assert scene.judged().ok
    del scene.runs[ids[0]]
    assert facts(scene, "torn") == "2 of 3 runs exist"


def test_more_rows_than_unknown_submits_explain_are_ghosts(scene: Scene) -> None:
    """One submitter that wrote nothing down explains its own runs, and no more."""
    for key in ("acme-1", "acme-2"):
        scene.run(key).start().succeed()
    del scene.submit_events[-3:]
    assert found(scene) == {"ghosts"}


@pytest.mark.parametrize("given", [2, 4])
def test_a_confirmed_submit_has_as_many_ids_as_runs(scene: Scene, given: int) -> None:
    """submit_many gives an id for each run, no fewer; and one key never gives two runs."""
    for story in scene.submit("acme-3", runs=given):
        story.start().succeed()
    scene.submit_events[-2] = replace(scene.submit_events[-2], count=3)
    assert facts(scene, "torn") == f"{given} ids for 3 runs"


def test_an_ok_cut_short_still_confirms(scene: Scene) -> None:
    """A submitter killed between its lines has committed; unnamed runs are explained."""
    for story in scene.submit("acme-3", runs=3):
        story.start().succeed()
    last = scene.submit_events[-1]
    scene.submit_events[-1] = replace(last, ids=last.ids[:1])
    assert scene.judged().ok


def test_one_key_gives_one_run(scene: Scene) -> None:
    """A caller that asks twice under one key is told of the same run twice."""
    first, second = scene.run("acme-1"), scene.run("acme-2")
    for story in (first, second):
        story.start().succeed()
    scene.submit_events[-2:] = [replace(scene.submit_events[-1], key="acme-1")]
    assert facts(scene, "torn") == "2 ids for 1 runs"


def test_a_failed_submit_may_be_tried_again(scene: Scene) -> None:
    """After a second intent its outcome is unknown until it is said."""
    run = scene.run().start().succeed()
    scene.submit_events[-1:] = [
        replace(scene.submit_events[-1], event="failed", ids=(), total=0),
        scene.submit_events[-2],
        replace(scene.submit_events[-1], event="prepared"),
    ]
    assert scene.judged().ok
    scene.say("ok", "acme-1", ids=(run.id,), total=1)
    assert scene.judged().ok


# Starts.


def test_a_second_start_without_a_reason_is_excess(scene: Scene) -> None:
    """Without a fault a run starts exactly once."""
    run = scene.run().start().succeed()
    scene.log("start", pid=900, run=run.id, token=1)
    assert facts(scene, "excess_starts") == "2 starts, 0 lost leases, 0 retries"
    assert found(scene) == {"excess_starts", "tokens"}


def test_each_lost_lease_explains_one_start(scene: Scene) -> None:
    """Starts ≤ 1 + lost leases: two starts with one loss are fine, three are not."""
    run = scene.run().start().lose().start().succeed()
    assert scene.judged().ok
    scene.log("start", pid=900, run=run.id, token=2)
    assert "3 starts, 1 lost leases" in facts(scene, "excess_starts")


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
    assert "token 1 (pid 102) was alive when token 2" in facts(scene, "overlaps")
    assert found(scene) == {"overlaps"}


@pytest.mark.parametrize("pid", [102, WORKER])
@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_a_disturbed_process_may_overlap(scene: Scene, how: str, pid: int) -> None:
    """Frozen past its lease, or an orphan of a killed worker: fenced, so it may overlap."""
    overlapping(scene, (how, pid))
    assert scene.judged().ok


def test_a_stranger_frozen_excuses_nobody(scene: Scene) -> None:
    """Only the process itself or its worker counts."""
    overlapping(scene, ("frozen", 999))
    assert found(scene) == {"overlaps"}


def test_a_worker_frozen_before_the_start_is_excused() -> None:
    """Its child may start what it was given before, and is an orphan in all but name."""
    scene = Scene()
    scene.log("frozen", pid=WORKER)
    overlapping(scene)
    assert scene.judged().ok


def test_a_kill_afterwards_excuses_nobody(scene: Scene) -> None:
    """What happens after the second start cannot be its reason."""
    overlapping(scene)
    scene.log("killed", pid=WORKER)
    assert found(scene) == {"overlaps"}


def test_a_freeze_that_was_over_excuses_nobody() -> None:
    """Frozen and thawed before the run began is no excuse."""
    scene = Scene()
    scene.log("frozen", pid=WORKER)
    scene.log("thawed", pid=WORKER)
    overlapping(scene)
    assert found(scene) == {"overlaps"}


def test_a_body_that_never_ended_needs_a_reason(scene: Scene) -> None:
    """A body without an end was killed, or the next one overlaps it."""
    scene.run().start().fail(again=True).start().succeed()
    del scene.task_events[-3]
    assert "never ended" in facts(scene, "overlaps")


# Outcomes.


def test_the_outcome_of_an_older_token_is_stale(scene: Scene) -> None:
    """The result names its token: it must be the newest."""
    run = scene.run().start().lose().start().succeed()
    scene.change(run, outcome_token=1)
    assert facts(scene, "stale") == "outcome of token 1, row is at 2"
    assert found(scene) == {"stale"}


def test_a_state_that_the_newest_attempt_does_not_bear_is_stale(scene: Scene) -> None:
    """Succeeded means that the newest attempt succeeded."""
    scene.run().start().fail(again=True).start().succeed()
    scene.change_attempt(-1, outcome="worker lost")
    assert "succeeded, but token 2 ended as worker lost" in facts(scene, "stale")


def test_an_attempt_after_success_is_stale(scene: Scene) -> None:
    """Nothing comes after success."""
    scene.run().start().lose().start().succeed()
    scene.change_attempt(-2, outcome="succeeded")
    assert facts(scene, "stale") == "token 1 succeeded, row is at 2"


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_success_that_was_overruled_is_stale(scene: Scene, state: str) -> None:
    """Asked to stop, a task may finish first: then its outcome stands."""
    run = scene.run().start().cancel()
    if state == "failed":
        *earlier, last = run.row.history
        scene.change(run, state=state, history=(*earlier, replace(last, state=state)))
    scene.change_attempt(-1, outcome="succeeded")
    assert f"{state}, but token 1 succeeded" in facts(scene, "stale")


def test_success_that_the_task_log_denies_is_stale(scene: Scene) -> None:
    """The rows say succeeded; the body says that it raised."""
    scene.run().start().succeed()
    scene.task_events[-1] = replace(scene.task_events[-1], outcome="raised ValueError")
    assert facts(scene, "stale") == "succeeded, but token 1 never returned"
    assert found(scene) == {"stale"}


def test_a_failure_overridden_without_an_operator_is_stale(scene: Scene) -> None:
    """A failed run stays failed unless somebody retries it by hand."""
    scene.run().start().fail(again=True).start().succeed()
    scene.change_attempt(-2, outcome="failed")
    assert "nobody asked" in facts(scene, "stale")


# History.


@pytest.mark.parametrize("dropped", [0, 1, 2, 3])
def test_a_missing_move_breaks_the_history(scene: Scene, dropped: int) -> None:
    """Every move is recorded: without any one of them the history does not replay."""
    run = scene.run().start().succeed()
    history = run.row.history
    scene.change(run, history=history[:dropped] + history[dropped + 1 :])
    assert found(scene) == {"history"}


@pytest.mark.parametrize("doubled", [0, 1, 2, 3])
def test_a_doubled_move_breaks_the_history(scene: Scene, doubled: int) -> None:
    """Every move is recorded exactly once."""
    run = scene.run().start().succeed()
    history = run.row.history
    scene.change(run, history=history[: doubled + 1] + history[doubled:])
    assert found(scene) == {"history"}


def test_a_history_that_ends_elsewhere_does_not_replay(scene: Scene) -> None:
    """The last entry is the row's state."""
    run = scene.run()
    scene.change(run.move("cancelled"), state="expired")
    assert facts(scene, "history") == "history ends in cancelled, row says expired"


def test_an_unknown_state_breaks_the_history(scene: Scene) -> None:
    """States are the eleven of the design."""
    scene.run().move("napping").move("cancelled")
    assert found(scene) == {"history"}


def test_an_admission_that_gave_no_token_is_found(scene: Scene) -> None:
    """Each admission in the history handed out a token."""
    run = scene.run().move("admitted").move("queued").start().succeed()
    assert facts(scene, "history") == "admitted 2 times, row is at token 1"
    assert run.row.token == 1
    assert found(scene) == {"history"}


def test_time_does_not_go_backwards(scene: Scene) -> None:
    """Moves are stamped by one clock, in order."""
    run = scene.run().start().succeed()
    *earlier, last = run.row.history
    scene.change(run, history=(*earlier, HistoryEntry(last.state, 0.0)))
    assert facts(scene, "history") == "times of the history go backwards"


# Tokens and attempts.


def test_a_row_behind_its_attempts_is_found(scene: Scene) -> None:
    """A token that an attempt holds was issued by the row."""
    run = scene.run().start().lose().start().succeed()
    scene.change(run, token=1, outcome_token=1, attempt_count=1)
    assert "row is at token 1, an attempt has 2" in facts(scene, "tokens")


def test_a_token_that_was_never_issued_is_found(scene: Scene) -> None:
    """No body runs with a token above the row's."""
    scene.run().start().succeed()
    scene.task_events[-2:] = [replace(event, token=5) for event in scene.task_events[-2:]]
    assert "started with token 5, row is at 1" in facts(scene, "tokens")


def test_a_token_used_twice_is_found(scene: Scene) -> None:
    """One token, one start."""
    run = scene.run().start().succeed()
    scene.log("start", pid=900, run=run.id, token=1)
    assert facts(scene, "tokens") == "two starts with token 1"


def swap_tokens(scene: Scene) -> None:
    swapped = {1: 2, 2: 1}
    scene.task_events[2:] = [
        replace(event, token=swapped[event.token]) for event in scene.task_events[2:]
    ]


def test_tokens_rise_with_the_starts(scene: Scene) -> None:
    """A later start has a higher token."""
    scene.run().start().fail(again=True).start().fail()
    swap_tokens(scene)
    assert facts(scene, "tokens") == "token 1 started after token 2"
    assert found(scene) == {"tokens"}


def test_a_frozen_process_may_start_late(scene: Scene) -> None:
    """Thawed after its lease it starts with an old token: useless, and no defect."""
    run = scene.run().admit().lose().start()
    scene.log("start", pid=900, run=run.id, token=1)
    run.succeed()
    assert found(scene) == {"overlaps", "tokens"}
    frozen = TaskEvent(event="frozen", pid=900, position=-1)
    scene.task_events.insert(0, frozen)
    assert scene.judged().ok


def test_attempts_out_of_order_are_found(scene: Scene) -> None:
    """Attempts are numbered and started in the order of their tokens."""
    scene.run().start().fail(again=True).start().succeed()
    scene.change_attempt(-2, number=2)
    scene.change_attempt(-1, number=1)
    assert facts(scene, "tokens") == "numbers of the attempts fall 1 times"


def test_starts_in_the_rows_follow_their_tokens(scene: Scene) -> None:
    """The rows tell the same order as the tokens."""
    scene.run().start().fail(again=True).start().succeed()
    scene.change_attempt(-2, started_at=scene.now())
    assert facts(scene, "tokens") == "token 2 started before token 1"


def test_a_missing_attempt_is_found(scene: Scene) -> None:
    """Each token leaves an attempt."""
    scene.run().start().lose().start().succeed()
    del scene.attempts[-2]
    assert facts(scene, "attempts") == "token 1 has 0 attempts"


def test_a_doubled_attempt_is_found(scene: Scene) -> None:
    """Each token leaves one attempt."""
    scene.run().start().fail()
    scene.attempts.append(scene.attempts[-1])
    assert facts(scene, "attempts") == "token 1 has 2 attempts"


def test_a_start_that_was_given_back_is_found(scene: Scene) -> None:
    """Given back means that the body never began."""
    run = scene.run().admit().give_back().start().succeed()
    scene.log("start", pid=900, run=run.id, token=1)
    assert "token 1 was given back and yet started" in facts(scene, "attempts")


@pytest.mark.parametrize("claimed", [0, 3])
def test_a_wrong_count_of_attempts_is_found(scene: Scene, claimed: int) -> None:
    """attempt_count counts the tokens, less those given back."""
    run = scene.run().start().lose().start().succeed()
    scene.change(run, attempt_count=claimed)
    assert facts(scene, "attempts") == f"attempt_count {claimed} at token 2"
    assert found(scene) == {"attempts"}


def test_attempts_of_nobody_are_found(scene: Scene) -> None:
    """An attempt belongs to a run."""
    run = scene.run().start().fail()
    del scene.runs[run.id]
    assert facts(scene, "attempts") == "attempts without a run"


# The report.


def test_the_report_names_the_first_ten(scene: Scene) -> None:
    """Ten of each kind with their ids, then how many more."""
    ids = [scene.run(f"acme-{number}").id for number in range(12)]
    report = scene.judged().report()
    assert report.startswith("verdict: BAD (13 submits, 13 runs, 1 starts,")
    assert "lost: 12\n" in report
    assert all(f"  {run_id}  not ended: queued" in report for run_id in ids[:10])
    assert ids[10] not in report
    assert report.endswith("and 2 more")
