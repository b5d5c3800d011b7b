"""jobs/runs/unblocking.py: what waited for a cap, a lock or a pause gets its hint again."""

import pytest
import redis
from pytest_django import Settings

from fleet import Admission, AdmissionRequest, Kind
from jobs.models import Outbox, Owner, Run, Worker
from jobs.owners.limits import pause_owner, resume_owner
from jobs.runs import unblocking
from jobs.runs.admission import refuse_unknown
from jobs.runs.unblocking import publish_unblocked, publish_with_known_task
from tests.jobs.scenes import (
    admitted,
    ask,
    hang,
    hinted,
    living_worker,
    lose_hints,
    recorded,
    submitted,
)

pytestmark = pytest.mark.usefixtures("committed")


def freed() -> int:
    return publish_unblocked(owner_ids=None, lock_keys=None)


def blocked() -> set[Run]:
    return set(Run.objects.exclude(blocked_by=""))


def run_through(answer: object) -> None:
    """Start and end what was admitted."""
    assert isinstance(answer, Admission)
    recorded(answer, Kind.STARTED)
    recorded(answer, Kind.SUCCEEDED)


def test_as_many_as_there_is_room_for(acme: Owner) -> None:
    """At once, without waiting for the sweep; one that is freed too early is only refused again."""
    Owner.objects.update(max_running=2)
    runs = submitted(acme, 5)
    worker = living_worker()
    answers = ask(worker, runs)
    assert blocked() == set(runs[2:])
    assert freed() == 0
    lose_hints()
    for ended in range(2):
        run_through(answers[ended])
        assert blocked() == set(runs[3 + ended :])
        assert hinted()[-1] == runs[2 + ended].id
        admitted(worker, runs[2 + ended])


def test_who_waits_for_a_lock_takes_no_place_under_the_cap(acme: Owner) -> None:
    """Only the first at each lock can start."""
    Owner.objects.update(max_running=2)
    pause_owner(acme)
    locked = submitted(acme, 3, lock="door")
    [free] = submitted(acme)
    ask(living_worker(), [*locked, free])
    assert blocked() == {*locked, free}
    resume_owner(acme)
    assert blocked() == set(locked[1:])


def test_a_lock_of_a_capped_owner_waits_for_both(acme: Owner) -> None:
    """Room without the lock, or the lock without room, is not enough."""
    Owner.objects.update(max_running=1)
    [holder], [waiting] = submitted(acme, lock="door"), submitted(acme, lock="door")
    answer, _ = ask(living_worker(), [holder, waiting])
    assert freed() == 0
    Owner.objects.update(max_running=5)
    assert freed() == 0
    run_through(answer)
    assert blocked() == set()


def test_a_run_that_waits_for_its_task_is_freed_by_a_worker_that_knows_it(acme: Owner) -> None:
    """Of its queue and alive; neither an end nor another reason's sweep touches it."""
    runs = submitted(acme, 2)
    worker = living_worker()
    Worker.objects.update(tasks=["tests.record"])
    refuse_unknown([AdmissionRequest(str(run.id), run.task) for run in runs])
    lose_hints()
    assert blocked() == set(runs)
    assert (freed(), publish_with_known_task()) == (0, 0)
    Worker.objects.update(tasks=["tests.add"], queues=["slow"])
    assert publish_with_known_task() == 0
    Worker.objects.update(queues=["jobs"])
    assert publish_with_known_task() == 2
    assert (blocked(), hinted()) == (set(), [run.id for run in runs])
    admitted(worker, runs[0])


def test_a_boot_frees_one_chunk(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker does not boot for as long as a backlog takes: the sweep frees the rest."""
    monkeypatch.setattr(unblocking, "CHUNK", 10)
    runs = submitted(acme, 25)
    Run.objects.update(blocked_by="task")
    living_worker()
    assert blocked() == set(runs[10:])
    assert publish_with_known_task() == 15


def test_many_are_freed_in_one_go(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunk by chunk, until none is left: a long pause leaves a long backlog."""
    monkeypatch.setattr(unblocking, "CHUNK", 10)
    runs = submitted(acme, 25)
    pause_owner(acme)
    ask(living_worker(), runs)
    lose_hints()
    resume_owner(acme)
    assert (acme.is_paused(), acme.paused_until, acme.paused_reason) == (False, None, "")
    assert blocked() == set()
    assert hinted() == [run.id for run in runs]


def test_freed_runs_are_in_the_outbox_until_they_are_published(
    acme: Owner, broker: redis.Redis, settings: Settings
) -> None:
    """As all others that become ready: a broker that is away just then costs no lease."""
    runs = submitted(acme, 2)
    pause_owner(acme)
    ask(living_worker(), runs)
    hang(broker, settings)
    resume_owner(acme)
    assert blocked() == set()
    [row] = Outbox.objects.all()
    assert sorted(row.run_ids) == sorted(run.id for run in runs)


def test_trouble_after_an_end_does_not_reach_who_recorded_it(
    acme: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The outcome is committed, and its answer must come; the sweep frees what waited."""
    runs = submitted(acme, 2, lock="door")
    answer, _ = ask(living_worker(), runs)
    assert isinstance(answer, Admission)
    # No such statement.
    monkeypatch.setattr(unblocking, "CHUNK", "many")
    assert recorded(answer, Kind.SUCCEEDED) == "succeeded"
    assert "left to the sweep" in caplog.text
    monkeypatch.undo()
    assert (freed(), blocked()) == (1, set())
