"""jobs/management/testing: runs in the test's process, without Redis, recorded as by a worker."""

from datetime import timedelta
from typing import Any

import pytest
from celery.signals import task_postrun
from django.db import connection

from jobs import Snooze, current_run, job, submit, submit_many
from jobs.core import sql
from jobs.core.errors import StateConflict, UnknownTask
from jobs.management.testing.harness import Fairshift
from jobs.models import Owner, Run, Worker
from tests.jobs.windows_world import calendar_of, window

ran: list[Any] = []


def states_of(*runs: Run) -> list[str]:
    """Return the state that each run has now, by its row."""
    found = dict(Run.objects.filter(id__in=[run.id for run in runs]).values_list("id", "state"))
    return [found[run.id] for run in runs]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@job(name="tests.noted", max_attempts=2, backoff_seconds=60)
def noted(value: str, fails: int = 0) -> str:
    """Note the value; fail in the first attempts."""
    run = current_run()
    assert run is not None
    ran.append(value)
    if run.attempt <= fails:
        raise ValueError(f"{value} is wrong")
    return value.upper()


@job(name="tests.noted_parent")
def parent(value: str) -> None:
    """Submit another run for the same owner."""
    noted.submit(value)


@job(name="tests.noted_sleepy")
def sleepy() -> None:
    """Snooze for half an hour at the first start."""
    run = current_run()
    assert run is not None
    if run.token == 1:
        raise Snooze(1_800)


@job(name="tests.noted_sql")
def broken_statement() -> None:
    """Have PostgreSQL refuse a statement."""
    sql.query("SELECT 1/0")


def test_submits_are_captured(fairshift: Fairshift, acme: Owner, northwind: Owner) -> None:
    """Until the test runs them; by task and owner, oldest first."""
    first = submit(noted, owner=acme, value="a")
    second = submit(noted, owner=northwind, value="b")
    third = submit("tests.add", owner=acme, x=1, y=2)
    assert fairshift.submitted() == [first, second, third]
    assert fairshift.submitted(noted, owner="acme") == [first]
    assert fairshift.submitted("tests.add", owner=northwind) == []
    assert ran == [] and states_of(first) == ["queued"]
    with pytest.raises(UnknownTask):
        fairshift.submitted("tests.noted_x")


def test_runs_of_before_are_not_the_test_s(acme: Owner, request: pytest.FixtureRequest) -> None:
    """What a project's own fixtures submitted is not counted."""
    submit("tests.add", owner=acme, x=1, y=2)
    assert request.getfixturevalue("fairshift").submitted() == []


def test_drain_runs_what_is_due_by_priority(fairshift: Fairshift, acme: Owner) -> None:
    """Then by age; the rows are as after a worker: history, attempts, result."""
    low = submit(noted, owner=acme, value="low", priority=1)
    submit(noted, owner=acme, value="high", priority=9)
    later = submit(noted, owner=acme, value="later", countdown=600)
    assert fairshift.drain() == 2
    assert ran == ["high", "low"]
    assert states_of(low, later) == ["succeeded", "scheduled"]
    assert [state for state, _, _ in Run.objects.get(id=low.id).moves] == [
        *("queued", "admitted", "running", "succeeded")
    ]
    low.refresh_from_db()
    assert low.result_value == "LOW" and low.attempts.get().outcome == "succeeded"
    assert fairshift.drain() == 0


def test_a_retry_waits_for_its_time(fairshift: Fairshift, acme: Owner) -> None:
    """The test moves the clock to it; the last attempt's error is on the row."""
    run = submit(noted, owner=acme, value="a", fails=2)
    assert fairshift.drain() == 1 and states_of(run) == ["retrying"]
    assert fairshift.drain() == 0
    fairshift.move_clock(timedelta(minutes=10))
    assert fairshift.drain() == 1 and states_of(run) == ["failed"]
    run.refresh_from_db()
    assert (run.error_type, run.error_text) == ("ValueError", "a is wrong")
    assert "in noted" in run.attempts[1].traceback and ran == ["a", "a"]


def test_inline_runs_each_submit_at_once(fairshift: Fairshift, acme: Owner) -> None:
    """Single ones, bulks, and what a task submits itself, for its own owner."""
    fairshift.inline()
    run = submit(noted, owner=acme, value="a")
    assert ran == ["a"] and states_of(run) == ["succeeded"]
    submission = submit_many(noted, [{"value": "b"}, {"value": "c"}], owner=acme)
    assert submission.progress["succeeded"] == 2
    submit(parent, owner=acme, value="d")
    assert ran == ["a", "b", "c", "d"]
    assert {run.owner for run in fairshift.submitted(noted)} == {acme}


def test_one_run_is_run(fairshift: Fairshift, acme: Owner) -> None:
    """By itself; one that may not start says why."""
    first, second = (submit(noted, owner=acme, value=name, lock="x") for name in "ab")
    assert fairshift.run(second).result_value == "B" and states_of(first) == ["queued"]
    Owner.objects.update(paused_at=fairshift.now())
    with pytest.raises(StateConflict, match=r"paused.* cannot be started now"):
        fairshift.run(first)


def test_a_failed_statement_spoils_no_test(fairshift: Fairshift, acme: Owner) -> None:
    """It is undone; the run has its error, and the test's transaction goes on."""
    run = submit(broken_statement, owner=acme, max_attempts=1)
    assert fairshift.drain() == 1
    run.refresh_from_db()
    assert (run.state, run.error_type) == ("failed", "DataError")


def test_a_task_that_closes_connections_ends_no_test(fairshift: Fairshift, acme: Owner) -> None:
    """Celery's signals of a worker do so around each task, when they are on in this process."""
    submit("tests.noted_parent", owner=acme, value="x")

    def close(**_: Any) -> None:
        connection.close()

    task_postrun.connect(close, weak=False)
    try:
        fairshift.drain()
    finally:
        task_postrun.disconnect(close)
    assert Run.objects.filter(owner=acme, state="succeeded").exists()


def test_the_clock_is_postgresql_s(fairshift: Fairshift, acme: Owner) -> None:
    """A due time, a deadline and a new run's id follow it, also a week ahead.

    It moves by a span or to a moment: with both, one would be ignored.
    """
    start = fairshift.now()
    due = submit(noted, owner=acme, value="due", countdown=86_400)
    late = submit(noted, owner=acme, value="late", deadline_seconds=60)
    fairshift.move_clock(timedelta(days=7))
    assert fairshift.now() - start >= timedelta(days=7)
    assert fairshift.drain() == 1
    assert ran == ["due"] and states_of(due, late) == ["succeeded", "expired"]
    new = submit(noted, owner=acme, value="new")
    assert new.created_at - start >= timedelta(days=7)
    fairshift.move_clock(to=start + timedelta(days=20))
    assert timedelta(days=20) <= fairshift.now() - start < timedelta(days=20, minutes=5)
    assert fairshift.drain() == 1 and ran == ["due", "new"]
    wrong: list[dict[str, Any]] = [{}, {"by": timedelta(1), "to": start}]
    for arguments in wrong:
        with pytest.raises(TypeError, match="not both"):
            fairshift.move_clock(**arguments)


def test_windows_are_obeyed_and_can_be_frozen(fairshift: Fairshift, acme: Owner) -> None:
    """Closed: a run with calendars waits. Open: it starts. One without calendars always does."""
    window(calendar_of(acme), opens_in=3_600, seconds=3_600)
    free = Owner.objects.create(slug="free")
    waits = submit(noted, owner=acme, value="waits")
    assert fairshift.drain() == 0 and states_of(waits) == ["held"]
    fairshift.open_windows()
    assert fairshift.drain() == 1 and ran == ["waits"]
    fairshift.close_windows()
    shut, other = submit(noted, owner=acme, value="x"), submit(noted, owner=free, value="y")
    assert fairshift.drain() == 1 and states_of(shut, other) == ["held", "succeeded"]


def test_a_snooze_into_a_closed_window_ends_at_the_next_opening(
    fairshift: Fairshift, acme: Owner
) -> None:
    """Not before, although the snooze is over; its only attempt is still unspent."""
    calendar, start = calendar_of(acme), fairshift.now()
    window(calendar, opens_in=-60, seconds=660)
    window(calendar, opens_in=3_600, seconds=600)
    run = submit(sleepy, owner=acme, max_attempts=1)
    assert fairshift.drain() == 1 and states_of(run) == ["retrying"]
    fairshift.move_clock(timedelta(minutes=31))
    assert fairshift.drain() == 0 and states_of(run) == ["held"]
    run.refresh_from_db()
    assert run.attempt_count == 0 and run.next_at is not None
    assert abs(run.next_at - start - timedelta(hours=1)) < timedelta(seconds=5)
    fairshift.move_clock(to=run.next_at - timedelta(seconds=10))
    assert fairshift.drain() == 0
    fairshift.move_clock(timedelta(seconds=11))
    assert fairshift.drain() == 1 and states_of(run) == ["succeeded"]
    assert list(run.attempts.values_list("number", "outcome")) == [(1, "snoozed"), (1, "succeeded")]


def test_the_test_leaves_nothing(committed: None, request: pytest.FixtureRequest) -> None:
    """With real commits too: neither schema nor search path; the clock is right again."""
    acme = Owner.objects.create(slug="acme")
    fairshift: Fairshift = request.getfixturevalue("fairshift")
    [before] = sql.query("SHOW search_path")
    fairshift.move_clock(timedelta(hours=5))
    run = submit(noted, owner=acme, value="a", countdown=60)
    fairshift.move_clock(timedelta(hours=1))
    assert fairshift.drain() == 1 and states_of(run) == ["succeeded"]
    fairshift.close()
    assert sql.query("SHOW search_path") == [before]
    assert not sql.query("SELECT FROM pg_namespace WHERE nspname = 'fairshift_test'")
    assert Worker.objects.get().hostname == "pytest@test"
