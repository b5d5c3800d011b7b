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
from tests.jobs.scenes import admitted, age, begun, living_worker, recorded, states, submitted
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def root(committed: None) -> Iterator[User]:
    """Who approves and overrides."""
    user = User.objects.create_superuser("root")
    yield user
    user.delete()


@pytest.mark.parametrize(
    ("end", "taken"), [("soft", "frozen"), ("hard", "frozen"), ("soft", "revoked")]
)
def test_what_runs_is_stopped_when_its_window_is_taken(
    acme: Owner, northwind: Owner, root: User, end: str, taken: str
) -> None:
    """By the next promotion, for this reason, and for good.

    What waits is held; another owner's run is not touched.
    """
    calendar = calendar_of(acme, end=end, needs_approval=taken == "revoked")
    opening = window(calendar, opens_in=-60, seconds=3_600)
    if taken == "revoked":
        approve(opening, actor=root)
    (run, _), [waiting], (other, _) = begun(acme), submitted(acme), begun(northwind)
    freeze(calendar) if taken == "frozen" else revoke(opening, actor=root)
    promotion.promote()
    assert states(run)[-1] == "cancelling"
    assert run.moves[-1][2] == "window closed"
    assert (states(waiting)[-1], states(other)[-1]) == ("held", "running")


def test_a_window_that_is_shortened_stops_it_at_the_new_close(acme: Owner) -> None:
    """Not before; and one that is made longer again lets it be."""
    calendar = calendar_of(acme, end="hard")
    opening = window(calendar, opens_in=-60, seconds=3_600)
    run, _ = begun(acme)
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
    run, _ = begun(acme)
    window(calendar, opens_in=86_400, seconds=3_600)
    promotion.promote()
    run.refresh_from_db()
    assert (run.state, run.stop_at) == ("running", None)
    assert run.closes_at is not None


def test_a_calendar_that_comes_to_apply_ends_what_runs(acme: Owner) -> None:
    """At its close, of which the attempt was not told; one that ceases to apply leaves it."""
    calendar = Calendar.objects.create(owner=acme, name="days", end="hard", needs_approval=False)
    window(calendar, opens_in=-60, seconds=3_600)
    run, _ = begun(acme)
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


@pytest.mark.parametrize(
    ("options", "column", "statement"),
    [
        ({"countdown": 60}, "next_at", "_DUE"),
        # No worker took these while their calendar was open.
        ({}, "not_after", "_CLOSED"),
        ({"countdown": 60}, "deadline_at", "_TOO_LATE"),
    ],
)
def test_what_runs_is_stopped_within_a_round_that_is_busy(
    acme: Owner,
    northwind: Owner,
    monkeypatch: pytest.MonkeyPatch,
    *,
    options: dict[str, int],
    column: str,
    statement: str,
) -> None:
    """A freeze that comes between two chunks does not wait for the last of them."""
    monkeypatch.setattr(promotion, "CHUNK", 1)
    monkeypatch.setattr(closing, "CHECK_SECONDS", 0.0)
    calendar = calendar_of(acme, end="hard")
    run, _ = begun(acme)
    submitted(northwind, 2, **options)
    Run.objects.filter(owner=northwind).update(**{column: "2026-01-01T00:00Z"})
    query, seen = prepared.query, []

    def watched(sql: str, parameters: Any = ()) -> Any:
        if sql == getattr(promotion, statement):
            seen.append(states(run)[-1])
            if len(seen) == 1:
                freeze(calendar)
        return query(sql, parameters)

    monkeypatch.setattr(prepared, "query", watched)
    promotion.expire() if column == "deadline_at" else promotion.promote()
    assert seen[:2] == ["running", "cancelling"]


def test_its_next_attempt_has_a_stop_of_its_own(acme: Owner) -> None:
    """What was to stop an earlier attempt is forgotten at the admission."""
    calendar = calendar_of(acme, end="hard")
    opening = window(calendar, opens_in=-60, seconds=3_600)
    run, first = begun(acme)
    change_window(opening, duration=timedelta(seconds=600))
    promotion.promote()
    recorded(first, Kind.RETRYING, delay=0.0)
    promotion.promote()
    admitted(living_worker(), run)
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
