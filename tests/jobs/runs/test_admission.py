"""jobs/runs/admission.py: a hint becomes an attempt where its row allows it, and only once."""

from datetime import timedelta
from uuid import uuid4

import pytest
from pytest_django import Settings

from fleet import Admission, AdmissionRequest, Kind, Refusal
from jobs import submit
from jobs.core import prepared
from jobs.core.sql import now
from jobs.models import Owner, Run
from jobs.owners.limits import pause_owner
from jobs.runs import admission
from jobs.runs.admission import admit
from jobs.runs.cancellation import cancel_runs
from jobs.system.heartbeat import leave
from jobs.system.promotion import promote
from jobs.system.rescue import rescue_runs
from tests.jobs.scenes import (
    admitted,
    age,
    ask,
    at_once,
    behind,
    changed_before_its_lock,
    held_by_somebody,
    living_worker,
    recorded,
    silence,
    states,
    submitted,
)

GONE, WAITS, BUSY = Refusal.GONE, Refusal.WAITS, Refusal.BUSY


def test_an_admission_brings_token_payload_and_context(acme: Owner) -> None:
    """All that the worker needs to start; and the row knows who holds it."""
    run = submit("tests.add", 1, y=2, owner=acme, labels={"site": "berlin"}, time_limit_seconds=60)
    worker = living_worker()
    answer = admitted(worker, run)
    assert (answer.run_id, answer.token, answer.attempt) == (str(run.id), 1, 1)
    assert answer.body == bytes(run.payload)
    assert answer.context == {
        "owner": "acme",
        "job": None,
        "submission": None,
        "due_at": None,
        "labels": {"site": "berlin"},
        "policy": {"time_limit_seconds": 60.0, "max_attempts": 3},
    }
    assert (answer.time_limit, answer.soft_time_limit) == (60, None)
    assert answer.headers == {"ignore_result": True}
    assert states(run) == ["queued", "admitted"]
    assert (run.worker_id, run.token, run.attempt_count) == (worker, 1, 1)
    assert run.admitted_at is not None and run.started_at is None


def test_of_two_at_once_one_gets_the_token(committed: None, acme: Owner) -> None:
    """Of each run: the other worker is told that it is busy or gone."""
    runs = submitted(acme, 60)
    workers = [living_worker("w1@here"), living_worker("w2@here"), living_worker("w3@here")]
    batches = [runs, runs[::-1], runs[30:] + runs[:30]]
    outcomes = at_once(
        *[
            lambda w=w, b=b: admit(w, [AdmissionRequest(str(r.id), r.task) for r in b])  # type: ignore[misc]
            for w, b in zip(workers, batches, strict=True)
        ]
    )
    for run in runs:
        answers = [outcome[str(run.id)] for outcome in outcomes]  # type: ignore[index]
        won = [answer for answer in answers if isinstance(answer, Admission)]
        assert len(won) == 1
        assert won[0].token == 1
        assert {answer for answer in answers if answer not in won} <= {BUSY, GONE}


def test_a_row_that_somebody_holds_is_busy(committed: None, acme: Owner) -> None:
    """Its hint is given back, and the others of the batch do not wait."""
    runs = submitted(acme, 3)
    worker = living_worker()
    with held_by_somebody(runs[1]):
        first, second, third = ask(worker, runs)
    assert (first.__class__, second, third.__class__) == (Admission, BUSY, Admission)
    admitted(worker, runs[1])


def test_a_row_that_somebody_has_just_changed_is_busy(
    committed: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the statement began it cannot see what it has locked; the hint comes again."""
    admission._Limits.are_expected = True  # else another statement comes after it, and sees it
    runs, worker = submitted(acme, 2), living_worker()
    with changed_before_its_lock(runs[0], monkeypatch):
        first, second = ask(worker, runs)
    assert (first, second.__class__) == (BUSY, Admission)
    admitted(worker, runs[0])


def test_limits_that_come_and_go_are_met(committed: None, acme: Owner) -> None:
    """A batch without any commits by itself; the first that has some is admitted under locks."""
    worker, runs = living_worker(), submitted(acme, 7)

    def admissions(batch: list[Run]) -> int:
        return sum(isinstance(answer, Admission) for answer in ask(worker, batch))

    admission._Limits.are_expected = True  # as after whatever was before
    assert admissions(runs[:1]) == 1
    assert not admission._Limits.are_expected
    assert admissions(runs[1:2]) == 1
    Owner.objects.update(max_running=3)
    assert admissions(runs[2:5]) == 1
    assert admission._Limits.are_expected
    Owner.objects.update(max_running=None)
    assert admissions(runs[5:]) == 2
    assert not admission._Limits.are_expected


@pytest.mark.parametrize("cap", [1, 3])
def test_a_cap_holds_against_workers_at_once(committed: None, acme: Owner, cap: int) -> None:
    """However many ask, as many run as the owner may; the rest remembers why it waits."""
    Owner.objects.update(max_running=cap)
    runs = submitted(acme, 8)
    workers = [living_worker(f"w{n}@here") for n in range(4)]
    for round_ in range(2):
        at_once(*[lambda w=w: ask(w, runs) for w in workers])  # type: ignore[misc]
        active = list(Run.objects.active())
        assert len(active) == cap
        assert Run.objects.filter(state="queued", blocked_by="cap").count() == 8 - cap * (
            round_ + 1
        )
        for run in active:
            at = Admission(str(run.id), run.token, 1, b"", {})
            recorded(at, Kind.STARTED)
            recorded(at, Kind.SUCCEEDED)


def test_a_lock_lets_one_run_at_a_time(committed: None, acme: Owner) -> None:
    """Also against workers at once; when its holder has ended, the next may go."""
    runs = submitted(acme, 4, lock="door")
    workers = [living_worker(f"w{n}@here") for n in range(3)]
    for left in (3, 2):
        at_once(*[lambda w=w: ask(w, runs) for w in workers])  # type: ignore[misc]
        holder = Run.objects.active().get()
        assert Run.objects.filter(state="queued", blocked_by="lock").count() == left
        at = Admission(str(holder.id), holder.token, 1, b"", {})
        recorded(at, Kind.STARTED)
        assert recorded(at, Kind.FAILED) == "failed"


def test_what_is_being_cancelled_keeps_its_place_and_its_lock(
    acme: Owner, northwind: Owner
) -> None:
    """It runs until its worker has stopped it."""
    Owner.objects.filter(pk=acme.pk).update(max_running=1)
    capped, locked = submitted(acme, 2), submitted(northwind, 2, lock="door")
    worker = living_worker()
    admitted(worker, capped[0])
    admitted(worker, locked[0])
    cancel_runs([capped[0].id, locked[0].id])
    assert ask(worker, [capped[1], locked[1]]) == [WAITS, WAITS]


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_start_that_was_seen_is_enough(acme: Owner, is_seen: bool) -> None:
    """Then the last attempt is an attempt like others."""
    [run] = submitted(acme, max_attempts=2)
    worker = living_worker()
    first = admitted(worker, run)
    if is_seen:
        recorded(first, Kind.STARTED)
    silence(worker, seconds=31)
    rescue_runs()
    promote()
    assert admitted(living_worker(), run).records_start_first is not is_seen


@pytest.mark.parametrize("until", [None, timedelta(minutes=5)])
def test_a_paused_owner_s_runs_wait(acme: Owner, until: timedelta | None) -> None:
    """Their hints are dropped, the rows remember why.

    A pause until a time ends by PostgreSQL's clock, without a resume.
    """
    [run] = submitted(acme)
    worker = living_worker()
    pause_owner(acme, until=until and now() + until)
    assert ask(worker, [run]) == [WAITS]
    assert states(run) == ["queued"]
    assert (run.blocked_by, run.token) == ("paused", 0)
    if until:
        Owner.objects.update(paused_until=now() - timedelta(milliseconds=1))
        admitted(worker, run)


def test_past_its_deadline_a_run_expires(acme: Owner) -> None:
    """Before it starts, with the reason in its history; also under a pause."""
    runs = submitted(acme, 3, deadline_seconds=60)
    for run in runs[:2]:
        age(run, "deadline_at", seconds=1)
    worker = living_worker()
    late, in_time = ask(worker, runs[1:])
    assert late is GONE
    assert isinstance(in_time, Admission)
    pause_owner(acme)
    assert ask(worker, runs[:1]) == [GONE]
    assert states(runs[0]) == ["queued", "expired"]
    assert runs[0].moves[-1][2] == "deadline passed"
    assert runs[0].attempt_count == 0


def test_a_deadline_that_passes_behind_a_cap_is_kept(committed: None, acme: Owner) -> None:
    """Who waits for another's count reads PostgreSQL's clock when that is over, and not before."""
    admission._Limits.are_expected = True  # then the wait is in the admission's transaction
    Owner.objects.update(max_running=1)
    [run] = submitted(acme, deadline_seconds=60)
    worker = living_worker()
    with behind(lambda: ask(worker, [run])) as (begin, outcomes):
        prepared.run("runs/lock_limits", [run.id], {"ids": [run.id]})
        begin()
        Run.objects.filter(id=run.id).update(deadline_at=now())
    assert outcomes == [[GONE]]
    assert states(run) == ["queued", "expired"]


def test_a_stale_worker_admits_nothing(acme: Owner, settings: Settings) -> None:
    """Its leases may be others' by now: it has to beat first.

    A worker that has left, or never was, has no row to which a token could be given.
    """
    [run] = submitted(acme)
    silent, gone = living_worker(), living_worker()
    silence(silent, seconds=31)
    leave(gone)
    for stale in (silent, gone, uuid4()):
        assert ask(stale, [run]) == [BUSY]
    assert states(run) == ["queued"]
    settings.FAIRSHIFT = {"LEASE_SECONDS": 60}
    admitted(silent, run)


def test_a_hint_that_names_another_task_is_gone(acme: Owner) -> None:
    """Forged, or from before a rename: the row names the task."""
    [run] = submitted(acme)
    answers = admit(living_worker(), [AdmissionRequest(str(run.id), "tests.total")])
    assert answers == {str(run.id): GONE}
    assert states(run) == ["queued"]
