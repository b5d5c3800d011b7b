"""jobs/runs/closing.py: what runs in a window that is taken from it, by its calendar's end
behaviour.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from fleet import Kind
from jobs.calendars import changes
from jobs.calendars.approvals import approve, revoke
from jobs.calendars.windows import change_window
from jobs.core import prepared
from jobs.core.sql import now
from jobs.models import Calendar, Owner, Run
from jobs.runs import closing
from jobs.system import promotion
from tests.jobs.scenes import admitted, age, living_worker, recorded, states, submitted
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def root(committed: None) -> Iterator[User]:
    """Who approves and overrides."""
    user = User.objects.create_superuser("root")
    yield user
    user.delete()


def running(owner: Owner) -> Run:
    """Return a run that a worker is at, in an opening."""
    [run] = submitted(owner)
    recorded(admitted(living_worker(), run), Kind.STARTED)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("end", ["soft", "hard"])
def test_what_runs_is_stopped_by_a_freeze(acme: Owner, northwind: Owner, end: str) -> None:
    """By the next promotion, for this reason, and for good; another owner's run goes on."""
    calendar = calendar_of(acme, end=end)
    window(calendar, opens_in=-60, seconds=3_600)
    run, other = running(acme), running(northwind)
    freeze(calendar)
    promotion.promote()
    assert states(run)[-1] == "cancelling"
    assert run.moves[-1][2] == "window closed"
    assert states(other)[-1] == "running"


def test_a_window_that_is_shortened_stops_it_at_the_new_close(acme: Owner) -> None:
    """Not before; and one that is made longer again lets it be."""
    calendar = calendar_of(acme, end="hard")
    opening = window(calendar, opens_in=-60, seconds=3_600)
    run = running(acme)
    change_window(opening, duration=timedelta(seconds=600))
    promotion.promote()
    run.refresh_from_db()
    assert run.stop_at is not None and run.closes_at is not None
    assert timedelta(seconds=500) < run.stop_at - now() < timedelta(seconds=600)
    assert run.stop_at < run.closes_at
    change_window(opening, duration=timedelta(seconds=7_200))
    promotion.promote()
    run.refresh_from_db()
    assert run.stop_at is None
    change_window(opening, duration=timedelta(seconds=600))
    promotion.promote()
    age(run, "stop_at", seconds=1)
    promotion.promote()
    assert states(run)[-1] == "cancelling"


def test_a_change_that_takes_nothing_from_it_stops_nothing(acme: Owner) -> None:
    """The close that was told at its admission stays a time limit."""
    calendar = calendar_of(acme, end="hard")
    window(calendar, opens_in=-60, seconds=3_600)
    run = running(acme)
    window(calendar, opens_in=86_400, seconds=3_600)
    promotion.promote()
    run.refresh_from_db()
    assert (run.state, run.stop_at) == ("running", None)
    assert run.closes_at is not None


def test_an_approval_that_is_revoked_takes_the_window(acme: Owner, root: User) -> None:
    """As a freeze does; what waits is held."""
    calendar = calendar_of(acme, end="soft", needs_approval=True)
    opening = window(calendar, opens_in=-60, seconds=3_600)
    approve(opening, actor=root)
    run, [waiting] = running(acme), submitted(acme)
    revoke(opening, actor=root)
    promotion.promote()
    assert (states(run)[-1], states(waiting)[-1]) == ("cancelling", "held")


def test_a_calendar_that_comes_to_apply_ends_what_runs(acme: Owner) -> None:
    """At its close, of which the attempt was not told; one that ceases to apply leaves it."""
    calendar = Calendar.objects.create(owner=acme, name="days", end="hard", needs_approval=False)
    window(calendar, opens_in=-60, seconds=3_600)
    run = running(acme)
    attachment = changes.attach(calendar, acme)
    promotion.promote()
    run.refresh_from_db()
    assert run.stop_at is not None
    assert run.stop_at - now() > timedelta(seconds=3_000)
    changes.detach(attachment)
    promotion.promote()
    run.refresh_from_db()
    assert run.stop_at is None
    freeze(calendar)
    changes.attach(calendar, acme)
    promotion.promote()
    assert states(run)[-1] == "cancelling"


def due(owner: Owner) -> None:
    """Have two runs come due."""
    submitted(owner, 2, countdown=60)
    Run.objects.filter(state="scheduled").update(next_at="2026-01-01T00:00Z")


def too_late(owner: Owner) -> None:
    """Have two runs that no worker took while their calendar was open."""
    runs = [run.id for run in submitted(owner, 2)]
    Run.objects.filter(id__in=runs).update(not_after="2026-01-01T00:00Z")


def expired(owner: Owner) -> None:
    """Have two runs whose deadline has passed."""
    runs = [run.id for run in submitted(owner, 2, countdown=60)]
    Run.objects.filter(id__in=runs).update(deadline_at="2026-01-01T00:00Z")


@pytest.mark.parametrize(
    ("waiting", "step"),
    [(due, "_promote_chunk"), (too_late, "_hold_late"), (expired, "_expire_chunk")],
)
def test_what_runs_is_stopped_within_a_round_that_is_busy(
    acme: Owner, northwind: Owner, monkeypatch: pytest.MonkeyPatch, waiting: Any, step: str
) -> None:
    """A freeze that comes between two chunks does not wait for the last of them."""
    monkeypatch.setattr(promotion, "CHUNK", 1)
    monkeypatch.setattr(closing, "CHECK_SECONDS", 0.0)
    calendar = calendar_of(acme, end="hard")
    run = running(acme)
    waiting(northwind)
    query, seen = prepared.query, []
    chunk = {"_promote_chunk": "_DUE", "_hold_late": "_CLOSED", "_expire_chunk": "_TOO_LATE"}[step]

    def watched(sql: str, parameters: Any = ()) -> Any:
        if sql == getattr(promotion, chunk):
            seen.append(states(run)[-1])
            if len(seen) == 1:
                freeze(calendar)
        return query(sql, parameters)

    monkeypatch.setattr(prepared, "query", watched)
    promotion.expire() if step == "_expire_chunk" else promotion.promote()
    assert seen[:2] == ["running", "cancelling"]


def test_its_next_attempt_has_a_stop_of_its_own(acme: Owner) -> None:
    """What was to stop an earlier attempt is forgotten at the admission."""
    calendar = calendar_of(acme, end="hard")
    opening = window(calendar, opens_in=-60, seconds=3_600)
    [run] = submitted(acme)
    worker = living_worker()
    first = admitted(worker, run)
    recorded(first, Kind.STARTED)
    change_window(opening, duration=timedelta(seconds=600))
    promotion.promote()
    recorded(first, Kind.RETRYING, delay=0.0)
    promotion.promote()
    admitted(worker, run)
    run.refresh_from_db()
    assert run.stop_at is None
    assert run.closes_at is not None
    assert run.closes_at - now() < timedelta(seconds=600)


def test_an_attempt_that_its_close_ended_says_so(acme: Owner) -> None:
    """A time limit of its own is one; which of both it was, its recording tells by the clock."""
    window(calendar_of(acme, end="hard"), opens_in=-60, seconds=3_600)
    runs = submitted(acme, 2)
    worker = living_worker()
    told = [admitted(worker, run) for run in runs]
    age(runs[0], "closes_at", seconds=1)
    for one in told:
        recorded(one, Kind.RETRYING, delay=60.0, cause="time limit")
    assert [states(run)[-1] for run in runs] == ["retrying", "retrying"]
    assert [run.moves[-1][2] for run in runs] == ["window closed", "time limit"]
