"""jobs/runs/why_waiting.py: every run that has not started says why, in one sentence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from pytest_django import Settings

from fleet import Kind, MessagePosition, OwnerSettings
from fleet.contract import NOT_BEGUN
from jobs import submit
from jobs.calendars import changes
from jobs.core import sql
from jobs.core.phrases import Phrase
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner, Run, Worker
from jobs.owners.limits import pause_owner
from jobs.runs import dispatch
from jobs.runs.why_waiting import queue_position
from tests.fleet.fair_queues import Queue
from tests.jobs.scenes import (
    admitted,
    age,
    ask,
    cut_off,
    hang,
    living_worker,
    recorded,
    silence,
    submitted,
)
from tests.jobs.windows_world import calendar_of, window

NO_HINT = "Redis has no hint of it yet, the sweep publishes it; in queue 'jobs', {}."
NOON = datetime(2099, 3, 1, 12, tzinfo=UTC)


def why(run: Run) -> str:
    found = Run.objects.get(id=run.id).why_waiting()
    # A page renders it in the reader's language.
    assert not found or isinstance(found, Phrase)
    return found


@pytest.fixture
def run(acme: Owner) -> Run:
    return submitted(acme)[0]


def test_without_a_worker_that_may_take_it(run: Run) -> None:
    """None is alive, none is of its queue, Redis does not answer it, or it does not know the task.

    One that does not say which tasks it knows may know it.
    """
    assert why(run) == "No worker takes from queue 'jobs'."
    silence(living_worker(), seconds=31)
    living_worker("w2@here", queues=["slow"])
    assert why(run) == "No worker takes from queue 'jobs'."
    cut_off(living_worker("w3@here"))
    assert why(run) == "No worker takes from queue 'jobs': worker w3@here cannot use Redis."
    living_worker("w4@here")
    assert why(run) == NO_HINT.format("next of acme's runs")
    Worker.objects.update(tasks=["tests.record"])
    assert why(run) == "No worker of queue 'jobs' knows task tests.add."
    Worker.objects.update(tasks=["tests.add", "tests.record"])
    assert why(run) == NO_HINT.format("next of acme's runs")


def test_in_its_queue(acme: Owner, run: Run) -> None:
    """Behind how many of its own owner's runs; its hint has not reached Redis."""
    living_worker()
    later = submitted(acme, 2)[1]
    assert why(run) == NO_HINT.format("next of acme's runs")
    assert why(later) == NO_HINT.format("behind 1 of acme's runs")


def test_while_redis_is_full(acme: Owner) -> None:
    """It refuses the hint, and answers: nothing else is said, from the first moment."""
    living_worker()
    with dispatch.broker().client(timeout=10) as client:
        client.config_set("maxmemory", 1)
    try:
        for place in ("next", "behind 1", "behind 2"):
            assert why(submitted(acme)[0]) == NO_HINT.format(f"{place} of acme's runs")
    finally:
        with dispatch.broker().client(timeout=10) as client:
            client.config_set("maxmemory", 0)


def test_due_and_not_promoted(acme: Owner) -> None:
    """A run that is late names what is missing: the system worker first, then beat."""
    [run] = submitted(acme, countdown=60)
    Run.objects.update(next_at=now() - timedelta(seconds=5))
    assert why(run).endswith(" UTC.")
    Run.objects.update(next_at=now() - timedelta(seconds=15))
    assert why(run).endswith("UTC. No worker takes from queue 'system', so nothing promotes it.")
    Worker.objects.filter(id=living_worker()).update(queues=["system"])
    assert why(run).endswith(
        "UTC. Nothing has promoted it: beat does not run, or the workers of 'system' are busy."
    )


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            {"error_type": "OSError"},
            "Attempt 1 of 3 failed (OSError); the next one is due 2099-03-01 12:00:00 UTC.",
        ),
        (
            {"error_type": "NotBegun", "cause": NOT_BEGUN},
            (
                "No process of its worker began it in time, so this attempt does not count; the"
                " next start is due 2099-03-01 12:00:00 UTC."
            ),
        ),
    ],
    ids=["failed", "not begun"],
)
def test_between_attempts(run: Run, facts: dict[str, str], sentence: str) -> None:
    """Which one failed, of how many, with which error; one that did not begin does not count."""
    at = admitted(living_worker(), run)
    assert why(run) == "A worker has taken it and starts it next."
    recorded(at, Kind.STARTED)
    recorded(at, Kind.RETRYING, delay=60.0, **facts)
    Run.objects.update(next_at=NOON)
    assert why(run) == sentence


def test_under_a_pause(acme: Owner, run: Run) -> None:
    """With the reason and the end, where somebody gave them."""
    pause_owner(acme)
    assert why(run) == "Owner acme is paused."
    pause_owner(acme, until=NOON.replace(year=2100), reason="change freeze")
    assert why(run) == "Owner acme is paused until 2100-03-01 12:00 UTC: change freeze"


def test_under_a_cap_and_behind_a_lock(acme: Owner, northwind: Owner) -> None:
    """How many run, of how many that may; the lock by the caller's own key."""
    Owner.objects.filter(pk=acme.pk).update(max_running=1)
    capped, locked = submitted(acme, 2), submitted(northwind, 2, lock="door: left")
    ask(living_worker(), [*capped, *locked])
    assert why(capped[1]) == "Owner acme runs 1 of at most 1 at once."
    assert why(locked[1]) == "Another run holds the lock 'door: left'."


READY = MessagePosition(
    state="ready",
    owner="acme",
    submission="7",
    place=812,
    of_submission=3_000,
    of_owner=3_000,
    owners_before=2,
)
PLACE = "lace 812 of acme's 3,000 in queue 'jobs'"


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({}, f"P{PLACE}; 2 owners are before it."),
        ({"owners_before": 1}, f"P{PLACE}; 1 owner is before it."),
        ({"owners_before": 0}, f"P{PLACE}; it is acme's turn."),
        ({"owners_before": None}, f"P{PLACE}."),
        (
            {"of_submission": 900},
            f"Place 812 of its submission's 900, of {PLACE[12:]}; 2 owners are before it.",
        ),
        (
            {"submission": "", "of_submission": 900, "owners_before": 0},
            f"Place 812 of 900 single runs, of {PLACE[12:]}; it is acme's turn.",
        ),
        ({"running": 5, "max_running": 5}, f"Owner acme is at 5 of 5; p{PLACE}."),
        ({"running": 4, "max_running": 5}, f"P{PLACE}; 2 owners are before it."),
        ({"is_paused": True, "max_running": 5}, f"Owner acme is paused; p{PLACE}."),
        (
            {"rest_seconds": 3.21},
            f"Owner acme has had its starts for now, the next in 3.2 s; p{PLACE}.",
        ),
        ({"state": "parked"}, "Another run holds the lock 'door'."),
        ({"state": "delayed", "due_seconds": 90}, "Its hint is due in 2 min."),
        ({"state": "delayed", "due_seconds": 0.01}, "Its hint is due in a moment."),
        ({"state": "leased"}, "A worker has taken its hint and asks whether it may start."),
    ],
)
def test_what_a_fair_queue_knows_in_one_sentence(facts: dict[str, Any], sentence: str) -> None:
    """Place, cap, pause, rate, lock and turn: the first that keeps it, and where it stands."""
    assert queue_position(replace(READY, **facts), queue="jobs", lock="door") == sentence


def test_in_a_fair_queue(acme: Owner, stranger: Owner, broker: redis.Redis) -> None:
    """Its place and turn come from there; of a stranger only that it is before."""
    living_worker()
    queue = Queue(broker)
    first, second = submitted(acme, 2)
    queue.put("stranger", "secret-1")
    queue.take()
    queue.put("acme", f"{first.id}:1", f"{second.id}:1", submission=str(first.submission_id))
    queue.put("stranger", "secret-2", "secret-3")
    dispatch.owners().set([OwnerSettings("acme", weight=3)], timeout=5)
    queue.put("acme", "busy")
    assert why(second).startswith(
        "Place 2 of its submission's 2, of acme's 3 in queue 'jobs'; it is acme's turn."
    )
    assert "stranger" not in why(second) and "secret" not in why(second)
    dispatch.owners().set([OwnerSettings("acme", max_running=1)], timeout=5)
    assert len(queue.take()) == 1
    assert why(second).startswith("Owner acme is at 1 of 1; place ")


def test_while_the_broker_is_away_the_row_answers(
    acme: Owner, broker: redis.Redis, settings: Settings
) -> None:
    """Within the deadline of a publish, and it says that Redis does not answer."""
    living_worker()
    [run] = submitted(acme)
    Queue(broker).put("acme", f"{run.id}:1")
    hang(broker, settings)
    assert why(run) == (
        "Redis does not answer, so no worker is given a run of 'jobs'; next of acme's runs."
    )
    dispatch.broker.cache_clear()


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
    sql.query(
        "UPDATE jobs_run SET state = %s, next_at = NULL, queued_at = NULL, owner_id = -1, "
        "blocked_by = 'cap', lock_key = 'x'",
        [state],
    )
    Worker.objects.update(queues={"not": "a list"})
    assert isinstance(why(run), str)
    Run.objects.update(owner=Owner.objects.get())
    assert isinstance(why(run), str)


def test_kept_by_its_calendar(acme: Owner) -> None:
    """The window, or the freeze with its reason; when it was queued before, too."""
    calendar = calendar_of(acme, "maintenance")
    window(calendar, opens_in=3_600, seconds=600, reason="nights")
    [run] = submitted("acme")
    assert why(run).startswith("Window 'nights' of calendar 'maintenance' opens ")
    Run.objects.update(state="queued", next_at=None)
    assert why(run).startswith("Window 'nights' of calendar 'maintenance' opens ")
    Run.objects.update(window_policy="overridden")
    assert why(run) == "No worker takes from queue 'jobs'."


def test_kept_until_somebody_approves(acme: Owner) -> None:
    """With who asked, and when."""
    anna = User.objects.create_user("anna")
    opening = window(
        calendar_of(acme, "maintenance", needs_approval=True),
        opens_in=-60,
        seconds=3_600,
        reason="nights",
        requested_by=anna,
    )
    [run] = submitted("acme")
    at = f"{opening.requested_at:%Y-%m-%d %H:%M UTC}"
    says = f"Window 'nights' of calendar 'maintenance' is not approved: asked for by anna at {at}"
    assert why(run).startswith(says)


def test_kept_for_want_of_a_calendar(acme: Owner) -> None:
    """One that requires a window, from which the calendar was taken."""
    calendar = calendar_of(acme)
    [run] = submitted("acme", window="required")
    changes.delete(calendar)
    assert why(run) == "It requires a window, and no calendar applies to it."
