"""jobs/runs/recording.py: outcomes are written once, by the newest token, along the table of
moves.
"""

import time
from datetime import timedelta
from itertools import product
from uuid import uuid4

import pytest
from celery import current_app

from fleet import Kind, Report
from jobs import submit
from jobs.core import sql
from jobs.core.sql import now
from jobs.core.states import MOVES, State
from jobs.models import Attempt, Outbox, Owner, Run
from jobs.runs import recording
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs
from jobs.runs.recording import move, record
from tests.jobs.scenes import (
    admitted,
    ask,
    begun,
    changed_before_its_lock,
    held_by_somebody,
    hinted,
    living_worker,
    recorded,
    states,
    submitted,
    told,
)


def attempts(run: Run) -> list[tuple[int, int, str]]:
    """Return token, number and outcome of each ended attempt."""
    return [(a.token, a.number, a.outcome) for a in run.attempts]


def test_start_and_end_come_one_after_the_other(acme: Owner) -> None:
    """The attempt in progress is on the run, the ended one is a row."""
    run, at = begun(acme)
    assert states(run) == ["queued", "admitted", "running"]
    assert attempts(run) == []
    assert recorded(at, Kind.SUCCEEDED, result=b'{"sum": 3}') == "succeeded"
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
    assert attempts(run) == [(1, 1, "succeeded")]
    assert run.result_value == {"sum": 3}


def writes_of_runs() -> int:
    """Return how many rows of runs this transaction, or this session, has updated so far."""
    sql.query("SELECT pg_stat_force_next_flush()")
    [row] = sql.query(
        "SELECT sum(n_tup_upd) + sum(pg_stat_get_xact_tuples_updated(relid)) AS count "
        "FROM pg_stat_user_tables WHERE relname LIKE 'jobs_run%%'"
    )
    return int(row["count"])


def test_start_and_end_in_one_batch_are_one_write_with_both_moves(acme: Owner) -> None:
    """Most tasks end before their start is due to be written."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    before = writes_of_runs()
    record([told(at, Kind.STARTED), told(at, Kind.SUCCEEDED)])
    assert writes_of_runs() - before == 1
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
    assert run.started_at is not None


def test_a_repeated_batch_is_harmless(acme: Owner) -> None:
    """After a connection that broke, nobody knows whether its commit came through."""
    run, at = begun(acme)
    batch = [told(at, Kind.STARTED), told(at, Kind.SUCCEEDED)]
    assert record(batch) == {str(run.id): "succeeded"}
    before = Run.objects.values().get()
    assert record(batch) == {}
    assert Run.objects.values().get() == before
    assert Attempt.objects.count() == 1


def test_an_older_token_is_fenced_off(acme: Owner) -> None:
    """Whatever it says, and though the run is active again."""
    run, old = begun(acme)
    recorded(old, Kind.FAILED, error_type="OSError")
    reopen_runs([run.id])
    new = admitted(living_worker("w2@here"), run)
    assert new.token == 2
    for kind in Kind:
        assert recorded(old, kind, result=b"1", delay=1.0) is None
    run.refresh_from_db()
    assert (run.state, run.token, run.result) == ("admitted", 2, None)
    assert recorded(new, Kind.SUCCEEDED, result=b"2") == "succeeded"
    assert attempts(run) == [(1, 1, "failed"), (2, 2, "succeeded")]


def test_tokens_of_the_future_and_unknown_runs_are_nobody_s(acme: Owner) -> None:
    """They are not in the answer."""
    run, at = begun(acme)
    assert recorded(at._replace(token=2), Kind.SUCCEEDED) is None
    assert recorded(at._replace(run_id=str(uuid4())), Kind.SUCCEEDED) is None
    assert states(run)[-1] == "running"


def test_of_two_attempts_in_one_batch_the_newer_is_written(acme: Owner) -> None:
    """In either order: a child that was given up may still report."""
    for order in (1, -1):
        run, old = begun(acme)
        recorded(old, Kind.FAILED)
        reopen_runs([run.id])
        new = admitted(living_worker(), run)
        batch = [told(new, Kind.STARTED), told(old, Kind.SUCCEEDED, result=b"1")][::order]
        assert record(batch) == {str(run.id): "running"}


def test_a_failed_try_waits_for_its_next(acme: Owner) -> None:
    """On PostgreSQL's clock; the error stands on the run, the traceback with the attempt."""
    run, at = begun(acme)
    error = {"error_type": "OSError", "error_message": "no route", "traceback": "line 1"}
    assert recorded(at, Kind.RETRYING, delay=60.0, **error) == "retrying"
    run.refresh_from_db()
    assert run.next_at is not None
    assert timedelta(seconds=55) < run.next_at - now() < timedelta(seconds=61)
    assert (run.error_type, run.error_message, run.ended_at) == ("OSError", "no route", None)
    attempt = run.attempts.get()
    assert (attempt.outcome, attempt.traceback) == ("retrying", "line 1")
    assert run.moves[-1][2] == "OSError"


def test_what_is_given_back_has_spent_no_attempt(acme: Owner) -> None:
    """It is queued with a hint, and its token is never given out again."""
    [run] = submitted(acme)
    Outbox.objects.all().delete()
    first = admitted(living_worker(), run)
    assert recorded(first, Kind.GIVEN_BACK) == "queued"
    assert Outbox.objects.get().run_ids == [run.id]
    run.refresh_from_db()
    assert (run.token, run.attempt_count) == (1, 0)
    second = admitted(living_worker(), run)
    assert (second.token, second.attempt) == (2, 1)
    assert attempts(run) == [(1, 1, "given back")]


def test_what_is_given_back_keeps_its_place(committed: None, acme: Owner) -> None:
    """However often: it has waited longer than what came after it."""
    first = submit("tests.add", x=0, y=1, owner=acme)
    time.sleep(0.5)  # a slow machine publishes late
    second = submit("tests.add", x=1, y=1, owner=acme)
    worker = living_worker()
    for _ in range(3):
        recorded(admitted(worker, first), Kind.GIVEN_BACK)
    assert hinted() == [*[first.id] * 4, second.id]


def test_what_is_given_back_is_queued_and_published_or_neither(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its hint in the outbox, in one transaction: else nobody would look for it."""
    run, at = begun(acme)
    Run.objects.filter(id=run.id).update(state="admitted", started_at=None)

    def fails(_run_ids: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(recording, "publish_on_commit", fails)
    with pytest.raises(RuntimeError):
        record([Report(at.run_id, at.token, Kind.GIVEN_BACK, time.monotonic())])
    run.refresh_from_db()
    assert run.state == "admitted"


def test_what_has_started_cannot_be_given_back(acme: Owner) -> None:
    """Somebody works on it, and starting it elsewhere would be a double start."""
    run, at = begun(acme)
    assert recorded(at, Kind.GIVEN_BACK) is None
    assert states(run)[-1] == "running"


@pytest.mark.parametrize(
    ("kind", "state", "outcome"),
    [
        (Kind.SUCCEEDED, "succeeded", "succeeded"),
        (Kind.FAILED, "cancelled", "cancelled"),
        (Kind.RETRYING, "cancelled", "cancelled"),
        (Kind.CANCELLED, "cancelled", "cancelled"),
        (Kind.GIVEN_BACK, "cancelled", "cancelled"),
    ],
)
@pytest.mark.parametrize("has_started", [True, False])
def test_what_ends_while_it_is_cancelled_is_cancelled(
    acme: Owner, has_started: bool, kind: Kind, state: str, outcome: str
) -> None:
    """But a task that succeeded first has succeeded."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    if has_started:
        recorded(at, Kind.STARTED)
    cancel_runs([run.id])
    assert recorded(at, Kind.STARTED) == "cancelling"
    assert recorded(at, kind, delay=1.0) == state
    assert states(run)[-2:] == ["cancelling", state]
    assert attempts(run) == [(1, 1, outcome)]


@pytest.mark.parametrize("seconds", [-3_600, 0, 3_600])
def test_a_worker_s_clock_cannot_turn_history_around(acme: Owner, seconds: float) -> None:
    """Ages are cut, so that no move comes before the one that it follows."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    moment = time.monotonic() + seconds
    start = Report(at.run_id, at.token, Kind.STARTED, moment)
    record([start, start._replace(kind=Kind.SUCCEEDED, at=moment - 5)])
    assert states(run)[-1] == "succeeded"
    assert run.admitted_at and run.started_at and run.ended_at
    assert run.admitted_at <= run.started_at <= run.ended_at <= now()


def test_a_row_that_somebody_holds_is_busy(committed: None, acme: Owner) -> None:
    """It is to be reported again; the others of the batch are written, and nobody waits."""
    runs = submitted(acme, 3)
    answers = ask(living_worker(), runs)
    batch = [told(at, Kind.SUCCEEDED) for at in answers]  # type: ignore[arg-type]
    batch[2] = batch[2]._replace(token=7)
    with held_by_somebody(runs[0]):
        states_now = record(batch)
    assert [states_now.get(str(run.id)) for run in runs] == ["busy", "succeeded", None]
    assert record(batch) == {str(runs[0].id): "succeeded"}


def test_a_row_that_somebody_has_just_changed_is_busy(
    committed: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the statement began it cannot see what it has locked; the outcome is not lost."""
    runs = submitted(acme, 2)
    batch = [told(at, Kind.SUCCEEDED) for at in ask(living_worker(), runs)]  # type: ignore[arg-type]
    with changed_before_its_lock(runs[0], monkeypatch):
        states_now = record(batch)
    assert [states_now[str(run.id)] for run in runs] == ["busy", "succeeded"]
    assert record(batch) == {str(runs[0].id): "succeeded"}


@pytest.mark.parametrize("cause", ["child lost", "time limit"])
def test_a_lost_child_s_stored_end_is_its_run_s(committed: None, acme: Owner, cause: str) -> None:
    """It died after Celery had stored the outcome: trying again would tell of it twice."""
    runs = [submit("tests.add", 1, 2, owner=acme, ignore_result=False) for _ in range(3)]
    answers = [admitted(living_worker(), run) for run in runs]
    for run in runs[:2]:
        current_app.backend.mark_as_done(str(run.id), 3)
    recorded(answers[1], Kind.FAILED)
    batch = [told(at, Kind.RETRYING, cause=cause, delay=0.0) for at in answers]
    assert record(batch) == {str(runs[0].id): "succeeded", str(runs[2].id): "retrying"}
    assert [states(run)[-1] for run in runs] == ["succeeded", "failed", "retrying"]
    assert runs[0].result_value == 3


def test_a_move_stays_inside_the_table(acme: Owner) -> None:
    """From each state to each other: moved where the table allows it, else left as it is."""
    [run] = submitted(acme)
    for state, target in product(State, State):
        Run.objects.filter(id=run.id).update(state=state, history=[[state, 1.0, ""]])
        moved = move([run.id], to=target, cause="why")
        run.refresh_from_db()
        assert bool(moved) == (target in MOVES[state]), (state, target)
        assert run.state == (target if moved else state)
        assert [entry[0] for entry in run.history] == [state, *([target] if moved else [])]


def test_a_snooze_spends_no_attempt(acme: Owner) -> None:
    """Not even the last one. It has started: its deadline no longer counts."""
    [run] = submitted(acme, max_attempts=1)
    Run.objects.filter(id=run.id).update(deadline_at=now() + timedelta(minutes=1))
    at = admitted(living_worker(), run)
    assert recorded(at, Kind.RETRYING, delay=60.0, cause="snoozed") == "retrying"
    run.refresh_from_db()
    assert (run.attempt_count, run.deadline_at, run.moves[-1][2]) == (0, None, "snoozed")
    assert attempts(run) == [(1, 1, "snoozed")]
    assert run.why_waiting().startswith("Its task has snoozed it; the next start is due ")
