"""jobs/rollouts/rounds.py: no run starts before its wave; after a stop nothing starts."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import JSONField, Value

from fleet import Kind, Refusal
from jobs import Waves, submit_many
from jobs.core.states import State
from jobs.models import AuditEntry, Owner, Rollout, Run, Submission
from jobs.rollouts import rounds, verbs
from jobs.rollouts.reads import rollouts_to_decide, steps_of
from jobs.runs import cancellation, gate
from jobs.runs.manual_retry import reopen_runs
from jobs.runs.recording import record
from jobs.system.notices.endpoints import make_endpoint
from jobs.system.promotion import expire, promote, queue_due
from tests.jobs.api.conftest import statements
from tests.jobs.scenes import admitted, ask, behind, finish, living_worker, submitted, told

CALLS = [{"x": number, "y": 0} for number in range(20)]


def rollout(owner: Owner, *, sizes: Any = (2, 5, "100%"), **waves: Any) -> Submission:
    """Submit 20 runs in waves of 2, 5 and 13."""
    return submit_many(
        "tests.add", CALLS, owner=owner, max_attempts=1, waves=Waves(sizes=sizes, **waves)
    )


def runs(submission: Submission, state: State = State.QUEUED) -> list[Run]:
    """Return the submission's runs in a state, lowest first."""
    return list(submission.runs.filter(state=state).order_by("id"))


def round_() -> None:
    """Do what the promoting round does."""
    while rounds.advance(queue_due):
        promote()
    promote()


def states_of(submission: Submission) -> dict[str, int]:
    """Count the submission's runs by state."""
    return dict(Counter(submission.runs.values_list("state", flat=True)))


def test_the_waves_follow_each_other(acme: Owner) -> None:
    """Each is released when all runs of the one before have ended; all are stored at the submit."""
    submission = rollout(acme)
    assert states_of(submission) == {"queued": 2, "held": 18}
    finish(runs(submission))
    round_()
    assert states_of(submission) == {"succeeded": 2, "queued": 5, "held": 13}
    first, *rest = runs(submission)
    finish(rest)
    round_()
    assert states_of(submission) == {"succeeded": 6, "queued": 1, "held": 13}
    finish([first])
    round_()
    assert states_of(submission) == {"succeeded": 7, "queued": 13}
    finish(runs(submission))
    round_()
    found = Rollout.objects.get(pk=submission.pk)
    assert (found.state, found.wave) == ("ended", 3)
    assert all(wave["released_at"] and wave["ended_at"] for wave in found.waves)


@pytest.mark.parametrize("way", ["promotion", "retry", "raw SQL"])
def test_no_run_starts_before_its_wave(acme: Owner, way: str) -> None:
    """Whatever queues a run: admission refuses it, and it is held again."""
    submission = rollout(acme)
    run = runs(submission, State.HELD)[-1]
    if way == "promotion":
        promote()
        assert states_of(submission) == {"queued": 2, "held": 18}
        return
    if way == "retry":
        run.cancel()
        reopen_runs([run.id])
    else:
        Run.objects.filter(id=run.id).update(state="queued", blocked_by="")
    run.refresh_from_db()
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    run.refresh_from_db()
    assert (run.state, run.next_at) == ("held", None)
    finish(runs(submission))
    round_()
    finish(runs(submission))
    round_()
    run.refresh_from_db()
    assert run.state == "queued"


def test_nothing_starts_after_a_stop(acme: Owner) -> None:
    """The failure that passes the limit stops it at once; what runs ends, what waits is held."""
    submission = rollout(acme, sizes=[10, 10], stop_at=1)
    waiting = runs(submission)
    worker = living_worker()
    running = admitted(worker, waiting[0])
    finish(waiting[1:2], Kind.FAILED)
    assert Rollout.objects.get(pk=submission.pk).state == "rolling"
    finish(waiting[2:3], Kind.FAILED)
    assert Rollout.objects.get(pk=submission.pk).state == "stopped"
    assert ask(worker, waiting[3:]) == [Refusal.WAITS] * 7
    record([told(running, Kind.SUCCEEDED)])
    round_()
    assert states_of(submission) == {"succeeded": 1, "failed": 2, "held": 17}
    assert AuditEntry.objects.filter(action="stop rollout", owner=acme).count() == 1


@pytest.mark.usefixtures("committed")
def test_an_admission_waits_for_a_stop_and_sees_it(acme: Owner) -> None:
    """One that begins before the stop's commit admits nothing after it."""
    submission = rollout(acme, sizes=[20])
    waiting, worker = runs(submission), living_worker()
    with behind(lambda: ask(worker, waiting)) as (begin, answers):
        verbs.pause(submission)
        begin()
    assert answers == [[Refusal.WAITS] * 20]


@pytest.mark.usefixtures("committed")
def test_a_stop_waits_for_the_admissions_before_it(acme: Owner) -> None:
    """What is admitted while a stop begins is admitted before the stop."""
    submission = rollout(acme, sizes=[20])
    waiting, worker = runs(submission), living_worker()
    with behind(lambda: verbs.pause(submission)) as (begin, _done):
        ask(worker, waiting)
        begin()
    stopped_at = Rollout.objects.get(pk=submission.pk).changed_at
    assert submission.runs.filter(admitted_at__lt=stopped_at).count() == 20


def test_a_calendar_releases_no_wave(acme: Owner) -> None:
    """Waiting runs are gated again when calendars change, those of later waves are not."""
    submission = rollout(acme)
    held = runs(submission, State.HELD)
    assert gate.gate_runs([run.id for run in held], cause="calendar changed") == 0
    assert states_of(submission) == {"queued": 2, "held": 18}


def test_a_resumed_rollout_accepts_the_failures_so_far(acme: Owner) -> None:
    """It stops again when as many fail as its limit allows from then on."""
    submission = rollout(acme, sizes=[10, 10], stop_at=0)
    waiting = runs(submission)
    finish(waiting[:1], Kind.FAILED)
    ask(living_worker(), waiting[1:])
    verbs.resume(submission)
    round_()
    assert states_of(submission) == {"failed": 1, "queued": 9, "held": 10}
    finish(waiting[1:2], Kind.FAILED)
    assert Rollout.objects.get(pk=submission.pk).state == "stopped"


@pytest.mark.parametrize(("earlier", "held"), [("resumed", 13), ("released", 0)])
def test_a_release_leaves_no_earlier_run_behind(acme: Owner, earlier: str, held: int) -> None:
    """Two steps of an operator before the next round: the runs of both become due."""
    submission = rollout(acme)
    if earlier == "resumed":
        verbs.pause(submission)
        ask(living_worker(), runs(submission))
        verbs.resume(submission)
    else:
        verbs.release(submission)
    verbs.release(submission)
    round_()
    assert states_of(submission).get("queued") == 20 - held


def test_a_late_success_counts_for_its_wave(acme: Owner) -> None:
    """A failed run that is retried and succeeds is no failure any more."""
    submission = rollout(acme, sizes=[10, 10], stop_at=1)
    waiting = runs(submission)
    finish(waiting[:1], Kind.FAILED)
    reopen_runs([waiting[0].id])
    finish(waiting[:1])
    finish(waiting[1:2], Kind.FAILED)
    assert Rollout.objects.get(pk=submission.pk).state == "rolling"


def test_a_wave_that_was_released_early_leaves_the_one_before_its_limit(acme: Owner) -> None:
    """Each released wave is examined, and the next one waits for all of them."""
    submission = rollout(acme, sizes=[5, 5, 10], stop_at=0)
    first = runs(submission)
    verbs.release(submission)
    round_()
    second = [run for run in runs(submission) if run not in first]
    finish(second)
    round_()
    assert states_of(submission) == {"succeeded": 5, "queued": 5, "held": 10}
    waves = Rollout.objects.get(pk=submission.pk).waves
    assert ["ended_at" in wave for wave in waves] == [False, True, False]
    finish(first[:1], Kind.FAILED)
    found = Rollout.objects.get(pk=submission.pk)
    assert (found.state, found.reason) == ("stopped", "1 of 1 ended runs of wave 1 have failed")
    verbs.resume(submission)
    finish(first[1:])
    round_()
    assert Rollout.objects.get(pk=submission.pk).wave == 3


@pytest.mark.parametrize("between", [round_, lambda: None])
def test_an_accepted_failure_that_is_retried_may_not_fail_again(acme: Owner, between: Any) -> None:
    """Late failures of any released wave count for it until all runs have ended."""
    submission = rollout(acme, sizes=[5, 15], stop_at=0)
    first = runs(submission)
    finish(first[:1], Kind.FAILED)
    verbs.resume(submission)
    finish(first[1:])
    round_()
    reopen_runs([first[0].id])
    between()
    assert Rollout.objects.get(pk=submission.pk).state == "rolling"
    finish(first[:1], Kind.FAILED)
    found = Rollout.objects.get(pk=submission.pk)
    assert (found.state, found.reason) == ("stopped", "1 of 5 ended runs of wave 1 have failed")


@pytest.mark.parametrize(
    ("waves", "after"), [({"stop_at": 0}, "stopped"), ({"between": "approval"}, "waiting")]
)
def test_a_rollout_whose_rest_is_cancelled_has_ended(acme: Owner, waves: Any, after: str) -> None:
    """Stopped or not: it asks for no decision, and no wave of cancelled runs for an approval.

    A run of a wave that was never released is retried within that wave, by the same rules.
    """
    submission = rollout(acme, **waves)
    finish(runs(submission)[:1], Kind.FAILED)
    submission.cancel()
    round_()
    assert Rollout.objects.get(pk=submission.pk).state == "ended"
    last = submission.runs.latest("id")
    reopen_runs([last.id])
    assert ask(living_worker(), [last]) == [Refusal.WAITS]
    assert Rollout.objects.get(pk=submission.pk).state == after
    if after == "stopped":
        verbs.resume(submission)
    else:
        for _ in "23":
            round_()
            verbs.release(submission)
    round_()
    finish([last])
    round_()
    assert Rollout.objects.get(pk=submission.pk).state == "ended"


def test_a_cancel_releases_no_wave(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its chunks, the first wave is over and the next ones are not cancelled yet."""
    submission = rollout(acme)
    seen = []

    def chunk_ends(*_given: Any) -> None:
        round_()
        seen.append(states_of(submission).get("queued", 0))

    monkeypatch.setattr(cancellation, "CHUNK", 3)
    monkeypatch.setattr(cancellation, "withdraw_on_commit", chunk_ends)
    submission.cancel()
    assert len(seen) == 7 and not any(seen)


def test_a_second_request_for_an_approval_is_told(acme: Owner) -> None:
    """After a stop, or when runs of a rollout that has ended are retried; not after a pause."""
    asks = {"name": "h", "url": "https://h.example", "events": ["rollout.waits"]}
    make_endpoint(asks, owner=acme)
    submission = rollout(acme, stop_at=0, between="approval")
    first = runs(submission)

    def asked() -> int:
        round_()
        return len(Rollout.objects.get(pk=submission.pk).untold or ())

    finish(first)
    assert asked() == 1
    verbs.pause(submission)
    verbs.resume(submission)
    assert asked() == 1
    submission.cancel()
    round_()
    reopen_runs([submission.runs.latest("id").id])
    assert asked() == 2


def test_no_run_expires_while_its_rollout_is_stopped(acme: Owner) -> None:
    """Whether a worker has asked for it meanwhile or not; its deadline counts from the resume."""
    submission = submit_many(
        "tests.add", CALLS, owner=acme, deadline_seconds=60, waves=Waves(sizes=["100%"])
    )
    verbs.pause(submission)
    ask(living_worker(), runs(submission)[:10])
    assert {run.deadline_at for run in runs(submission, State.HELD)} == {None}
    submission.runs.filter(deadline_at__isnull=False).update(deadline_at="2026-01-01T00:00Z")
    assert not expire()
    assert states_of(submission) == {"held": 10, "queued": 10}
    verbs.resume(submission)
    assert not expire()
    round_()
    assert states_of(submission) == {"queued": 20}
    finish(runs(submission))


def test_a_wave_waits_for_its_time(acme: Owner) -> None:
    """The time counts from the end of the wave before, also over a pause; an operator may release
    it earlier.
    """
    submission = rollout(acme, between=timedelta(hours=1))
    finish(runs(submission))
    round_()
    before = Rollout.objects.get(pk=submission.pk)
    verbs.pause(submission)
    verbs.resume(submission)
    round_()
    after = Rollout.objects.get(pk=submission.pk)
    assert (before.state, after.state, after.next_at) == ("waiting", "waiting", before.next_at)
    assert states_of(submission) == {"succeeded": 2, "held": 18}
    Rollout.objects.update(next_at="2026-01-01T00:00Z")
    round_()
    assert states_of(submission) == {"succeeded": 2, "queued": 5, "held": 13}
    verbs.release(submission)
    round_()
    assert states_of(submission) == {"succeeded": 2, "queued": 18}


def test_a_deadline_counts_from_the_release(acme: Owner) -> None:
    """A run whose wave is not released does not expire."""
    submission = submit_many(
        "tests.add", CALLS, owner=acme, deadline_seconds=60, waves=Waves(sizes=[1, "100%"])
    )
    held = runs(submission, State.HELD)
    assert {run.deadline_at for run in held} == {None}
    finish(runs(submission))
    round_()
    [queued, *_] = runs(submission)
    assert queued.deadline_at is not None and queued.queued_at is not None
    assert abs((queued.deadline_at - queued.queued_at).total_seconds() - 60) < 5


def test_the_verdict_names_rollouts_that_need_a_decision(acme: Owner) -> None:
    """Stopped ones before those that wait for an approval; none while waves run."""
    assert rollouts_to_decide(Rollout.objects.all()) == []
    waits = rollout(acme, between="approval")
    finish(runs(waits))
    round_()
    stops = rollout(acme, stop_at=0)
    finish(runs(stops)[:1], Kind.FAILED)
    found = rollouts_to_decide(Rollout.objects.all())
    assert [one.submission for one in found] == [stops, waits]


def test_a_page_shows_waves_as_steps(acme: Owner) -> None:
    """What each has come to, and its failures against the limit, without the accepted ones."""
    submission = rollout(acme, sizes=[3, 5, 12], stop_at="40%")
    first = runs(submission)
    finish(first[:1], Kind.FAILED)
    finish(first[1:])
    round_()
    finish(runs(submission)[:3], Kind.FAILED)
    steps = steps_of(Rollout.objects.get(pk=submission.pk))
    assert [one.state for one in steps] == ["ended", "over", "held"]
    assert [(one.failed, one.allowed) for one in steps] == [(1, 1), (3, 1), (0, None)]
    verbs.resume(submission)
    [_ended, step, _held] = steps_of(Rollout.objects.get(pk=submission.pk))
    assert (step.state, step.failed, step.accepted, step.allowed) == ("open", 0, 3, 1)
    verbs.pause(submission)
    steps = steps_of(Rollout.objects.get(pk=submission.pk))
    assert [one.state for one in steps] == ["ended", "paused", "held"]


def test_runs_without_waves_cost_no_statement_more(acme: Owner) -> None:
    """One statement admits a batch of them, and one records it, whether runs fail or not."""
    some = submitted(acme, 3)
    worker = living_worker()
    ask(worker, some[:1])
    with statements() as found:
        both = [admitted(worker, run) for run in some[1:]]
        assert len(found) == 2
        record([told(one, Kind.FAILED) for one in both])
        assert len(found) == 3


@pytest.mark.parametrize(
    "spoilt", [{"waves": []}, {"waves": None}, {"waves": [{"size": "x"}]}, {"stop_at": "many"}]
)
def test_a_spoilt_rollout_stops_no_other(acme: Owner, spoilt: dict[str, Any]) -> None:
    """Raw SQL may write anything: the round goes on with the next rollout, and with promotion."""
    bad, good = rollout(acme), rollout(acme)
    finish(runs(bad))
    finish(runs(good))
    [(name, value)] = spoilt.items()
    written = Value(value, JSONField()) if name == "waves" else value
    Rollout.objects.filter(pk=bad.pk).update(**{name: written})
    round_()
    assert states_of(good) == {"succeeded": 2, "queued": 5, "held": 13}
