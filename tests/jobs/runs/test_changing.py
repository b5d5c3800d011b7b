"""jobs/runs/changing.py: a waiting run is changed, and one that a worker has never is."""

from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from kombu import Queue
from pytest_django import Settings

from fleet import AdmissionRequest, Kind, Refusal
from jobs import Waves, job, submit, submit_many
from jobs.core.errors import ArgumentError, FairshiftError, OptionError, StateConflict
from jobs.core.sql import now
from jobs.core.states import WAITING, State
from jobs.models import AuditEntry, Owner, Run
from jobs.owners.limits import pause_owner
from jobs.runs.admission import admit
from jobs.runs.changing import change_run
from jobs.system.promotion import expire, promote
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.scenes import (
    admitted,
    ask,
    behind,
    hinted,
    known,
    living_worker,
    messages,
    recorded,
    states,
    submitted,
)
from tests.jobs.windows_world import calendar_of, window

HOUR = timedelta(hours=1)
QUEUE = "night"


@job(name="tests.host")
def host_task(host: str) -> str:
    return host


def test_another_priority_goes_first(committed: None, acme: Owner) -> None:
    """Its hint is replaced by one of that priority, and the audit has both values."""
    first, second = submitted(acme, 2)
    change_run(second, priority=9, reason="urgent")
    assert hinted() == [second.id, first.id]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.owner) == ("change", "urgent", acme)
    assert entry.details == {"before": {"priority": 5}, "after": {"priority": 9}}
    assert admitted(living_worker(), second).token == 2


def test_another_queue_takes_the_hint_along(
    committed: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that a worker of the old queue has taken already: there the run does not start."""
    monkeypatch.setitem(current_app.amqp.queues, QUEUE, Queue(QUEUE))
    [run] = submitted(acme)
    with current_app.connection_for_write() as connected:
        taken = connected.default_channel.basic_get("jobs")
        assert taken is not None
        change_run(run, queue=QUEUE)
    assert hinted(QUEUE) == [run.id]
    worker = living_worker()
    asked = AdmissionRequest(str(run.id), run.task, token=1)
    assert admit(worker, [asked]) == {str(run.id): Refusal.GONE}
    assert admit(worker, [asked._replace(token=2)])[str(run.id)] is not Refusal.GONE


def test_a_later_due_time_takes_the_hint_away(committed: None, acme: Owner) -> None:
    """Promotion queues it then; an earlier time is met at once."""
    [run] = submitted(acme)
    change_run(run, due_at=now() + HOUR)
    assert states(run) == ["queued", "scheduled"] and not messages()
    promote()
    assert ask(living_worker(), [run]) == [Refusal.GONE]
    change_run(run, due_at=None)
    promote()
    assert states(run) == ["queued", "scheduled", "queued"] and hinted() == [run.id]


def test_a_retry_is_brought_forward(acme: Owner) -> None:
    """Its next attempt starts at its new due time."""
    [run] = submitted(acme)
    recorded(admitted(living_worker(), run), Kind.RETRYING, error_type="OSError", delay=3_600.0)
    change_run(run, due_at=now())
    promote()
    run.refresh_from_db()
    assert run.state == State.QUEUED


def test_calendars_decide_after_a_change(committed: None, acme: Owner) -> None:
    """A held run that is due later is looked at again then."""
    window(calendar_of(acme), opens_in=3_600, seconds=600)
    run = submit("tests.add", 1, 2, owner=acme.slug)
    change_run(run, due_at=now() + 2 * HOUR, priority=1)
    assert states(run) == ["held", "scheduled"]
    change_run(run, due_at=None)
    promote()
    assert states(run) == ["held", "scheduled", "held"]


def test_a_run_of_a_later_wave_waits_for_its_wave(acme: Owner) -> None:
    """It is changed as others are; its deadline counts from the release."""
    calls = [{"x": n, "y": 0} for n in range(2)]
    submit_many("tests.add", calls, owner=acme, waves=Waves(sizes=(1, 1)))
    run = Run.objects.get(state=State.HELD)
    change_run(run, due_at=None, priority=2, labels={"site": "berlin"})
    promote()
    assert states(run) == ["held"] and (run.priority, run.blocked_by) == (2, "wave")
    with pytest.raises(OptionError, match="release of the run's wave"):
        change_run(run, deadline_at=now() + HOUR)


def test_a_paused_run_is_changed_without_a_hint(committed: None, acme: Owner) -> None:
    """The end of the pause publishes it, with its new values."""
    [run] = submitted(acme)
    pause_owner(acme)
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    change_run(run, priority=1)
    assert not messages() and run.blocked_by == "paused"


def test_arguments_are_checked_as_at_a_submit(acme: Owner) -> None:
    """Nothing changes with wrong ones; the audit does not repeat them; no new hint is needed."""
    [run] = submitted(acme)
    for wrong in ({"x": 1}, {"x": "one", "y": 2}, {"x": 1, "y": 2, "z": 3}):
        with pytest.raises(ArgumentError):
            change_run(run, arguments=wrong, priority=1)
    run.refresh_from_db()
    assert run.priority == 5
    change_run(run, arguments={"x": 41, "y": 1})
    assert run.arguments == ([], {"x": 41, "y": 1}) and run.token == 0
    assert AuditEntry.objects.get().details["after"] == {"arguments": "changed"}
    change_run(run, arguments={"x": 41, "y": 1})
    assert AuditEntry.objects.count() == 1


def test_arguments_of_a_lost_key_may_be_replaced(
    committed: None, acme: Owner, settings: Settings
) -> None:
    """A run that waits for a key gets a hint, once its arguments are under one that is known."""
    use_ring(settings, KEY_1)
    [run] = submitted(acme)
    use_ring(settings, KEY_1, KEY_2)
    Run.objects.filter(id=run.id).update(blocked_by="key")
    run.refresh_from_db()
    change_run(run, arguments={"x": 2, "y": 2})
    assert (run.payload_key, run.blocked_by) == (2, "")
    assert known() == [f"{run.id}:2"]


def test_an_argument_that_names_the_lock_stays(acme: Owner) -> None:
    """The lock was filled at the submit: other arguments would run without theirs."""
    given = {"lock": "{host}", "target": "{host}"}
    submit_many("tests.host", [{"host": "edge-7"}], owner=acme, **given)
    run = Run.objects.get()
    with pytest.raises(ArgumentError, match="edge-7"):
        change_run(run, arguments={"host": "edge-8"})
    alone = submit("tests.host", "edge-7", owner=acme, lock="edge-7")
    change_run(alone, arguments={"host": "edge-8"})
    assert alone.lock_key == "acme:edge-7"


WRONG: list[dict[str, Any]] = [
    {"priority": 10},
    {"priority": None},
    {"queue": "nowhere"},
    {"labels": {"site": 7}},
    {"deadline_at": lambda: now() - HOUR},
    {"due_at": lambda: now() + 9_000 * HOUR},
    {"due_at": lambda: now() + 2 * HOUR, "deadline_at": lambda: now() + HOUR},
]


@pytest.mark.parametrize("given", WRONG, ids="-".join)
def test_a_wrong_fact_is_named(acme: Owner, given: dict[str, Any]) -> None:
    """And nothing has changed."""
    [run] = submitted(acme)
    values = {name: value() if callable(value) else value for name, value in given.items()}
    with pytest.raises(FairshiftError) as refused:
        change_run(run, **values)
    assert getattr(refused.value, "option", "") in (*given, "labels.site")
    assert not AuditEntry.objects.exists()


def test_a_deadline_is_for_the_first_start(acme: Owner) -> None:
    """A run that has started has met it, and takes none; one that waits expires by the new one."""
    started, waiting = submitted(acme, 2)
    recorded(admitted(living_worker(), started), Kind.RETRYING, error_type="OSError", delay=60.0)
    with pytest.raises(OptionError, match="first start"):
        change_run(started, deadline_at=now() + HOUR)
    change_run(waiting, deadline_at=now() + HOUR)
    Run.objects.filter(id=waiting.id).update(deadline_at=now())
    assert expire() == 1
    change_run(started, labels={"site": "berlin"}, deadline_at=None)
    assert started.labels == {"site": "berlin"}


@pytest.mark.parametrize("state", sorted(set(State) - WAITING))
def test_a_run_that_does_not_wait_is_a_conflict(acme: Owner, state: State) -> None:
    """A worker has it, or it has ended."""
    [run] = submitted(acme)
    Run.objects.filter(id=run.id).update(state=state)
    with pytest.raises(StateConflict, match=f"is {state} and cannot be changed"):
        change_run(run, priority=1)


def test_an_admission_that_comes_first_wins(committed: None, acme: Owner) -> None:
    """The change waits for it, and changes nothing."""
    [run] = submitted(acme)
    worker = living_worker()
    with behind(lambda: change_run(run, priority=1)) as (begin, outcomes):
        admitted(worker, run)
        begin()
    assert isinstance(outcomes[0], StateConflict)
    run.refresh_from_db()
    assert (run.state, run.priority) == (State.ADMITTED, 5)
