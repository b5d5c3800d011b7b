"""jobs/waiting.py: every run that has not started says why, in one sentence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection

from fleet import Kind
from jobs import submit
from jobs.models import Owner, Run, Worker
from jobs.pausing import pause_owner
from jobs.recording import move
from jobs.states import State
from tests.jobs.scenes import admitted, age, ask, living_worker, recorded, silence, submitted

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def why(run: Run) -> str:
    return Run.objects.get(id=run.id).why_waiting()


@pytest.fixture
def run(acme: Owner) -> Run:
    return submitted(acme)[0]


def test_without_a_worker(run: Run) -> None:
    """Nobody takes from the queue: none there, none alive, none for this queue."""
    assert why(run) == "No worker takes from queue 'jobs'."
    silence(living_worker(), seconds=31)
    living_worker(queues=["slow"])
    assert why(run) == "No worker takes from queue 'jobs'."


def test_in_its_queue(acme: Owner, run: Run) -> None:
    """Behind how many of its own owner's runs."""
    living_worker()
    later = submitted(acme, 2)[1]
    assert why(run) == "In queue 'jobs', next of acme's runs."
    assert why(later) == "In queue 'jobs', behind 1 of acme's runs."


def test_due_later(acme: Owner) -> None:
    """The time, in UTC, as the row has it."""
    [run] = submitted(acme, countdown=60)
    Run.objects.update(next_at=NOON)
    assert why(run) == "Due 2026-03-01 12:00:00 UTC."


def test_held(acme: Owner) -> None:
    """Until when, if that is known."""
    [run] = submitted(acme, countdown=60)
    move([run.id], to=State.HELD)
    Run.objects.update(next_at=NOON)
    assert why(run) == "Held until 2026-03-01 12:00:00 UTC."
    Run.objects.update(next_at=None)
    assert why(run) == "Held."


def test_between_attempts(run: Run) -> None:
    """Which one failed, of how many, with which error."""
    at = admitted(living_worker(), run)
    assert why(run) == "A worker has taken it and starts it next."
    recorded(at, Kind.STARTED)
    recorded(at, Kind.RETRYING, delay=60.0, error_type="OSError")
    Run.objects.update(next_at=NOON)
    assert why(run) == (
        "Attempt 1 of 3 failed (OSError); the next one is due 2026-03-01 12:00:00 UTC."
    )


def test_under_a_pause(acme: Owner, run: Run) -> None:
    """With the reason and the end, where somebody gave them."""
    pause_owner(acme)
    assert why(run) == "Owner acme is paused."
    pause_owner(acme, until=NOON.replace(year=2100), reason="change freeze")
    assert why(run) == "Owner acme is paused until 2100-03-01 12:00 UTC: change freeze"


def test_under_a_cap(acme: Owner) -> None:
    """How many run, of how many that may."""
    Owner.objects.update(max_running=1)
    runs = submitted(acme, 2)
    ask(living_worker(), runs)
    assert why(runs[1]) == "Owner acme runs 1 of at most 1 at once."


def test_behind_a_lock(acme: Owner) -> None:
    """By the caller's own key."""
    runs = submitted(acme, 2, lock="door: left")
    ask(living_worker(), runs)
    assert why(runs[1]) == "Another run holds the lock 'door: left'."


@pytest.mark.parametrize("state", ["running", "cancelling", "succeeded", "failed", "cancelled"])
def test_started_or_ended_it_waits_for_nothing(run: Run, state: str) -> None:
    """There is nothing to say."""
    Run.objects.update(state=state)
    assert why(run) == ""


def test_of_strangers_it_tells_nothing(acme: Owner, run: Run, stranger: Owner) -> None:
    """Whatever they run, hold or queue, before or after."""
    living_worker()
    before = why(run)
    Owner.objects.filter(pk=stranger.pk).update(max_running=1, paused_reason="secret")
    theirs = submitted(stranger, 5, lock="door", priority=9)
    for other in theirs:
        age(other, "queued_at", seconds=60)
    ask(living_worker(), theirs)
    assert why(run) == before
    mine = submit("tests.add", 1, 2, owner=acme, lock="door")
    assert "stranger" not in why(mine)
    assert "lock" not in why(mine)


@pytest.mark.parametrize("state", State)
def test_it_never_raises(run: Run, state: State) -> None:
    """Also on rows that somebody has broken by raw SQL."""
    living_worker()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_run SET state = %s, next_at = NULL, queued_at = NULL, owner_id = -1, "
            "blocked_by = 'cap', lock_key = 'x'",
            [state],
        )
    Worker.objects.update(queues={"not": "a list"})
    assert isinstance(why(run), str)
    Run.objects.update(owner=Owner.objects.get())
    assert isinstance(why(run), str)
