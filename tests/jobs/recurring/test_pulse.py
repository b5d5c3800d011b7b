"""jobs/recurring/pulse.py: every slot is handed out once, and every tick is sent until it is
done.
"""

from collections.abc import Iterable

import pytest
from celery import current_app
from django_celery_beat.models import PeriodicTask
from pytest_django import Settings

from jobs import tasks
from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Cursor, Job, Owner, Tick
from jobs.recurring.late_commits import trigger_late_commits
from jobs.recurring.pulse import REST_SLOTS, make_ticks
from jobs.schedules import moment_of, slot_of
from jobs.system.periodic import make_missing
from tests.jobs.recurring.scenes import at, recurring, runs_of
from tests.jobs.scenes import messages, open_transaction, row_held

pytestmark = pytest.mark.usefixtures("committed", "no_ticks")


@pytest.fixture(autouse=True)
def far(acme: Owner, committed: None, no_ticks: None) -> Job:
    """A job that is due in a year: without an enabled one, the pulse rests."""
    return recurring(acme, "far", schedule="once", once_at=at(366 * 24 * 60))


def behind(slots: int) -> int:
    """Put the cursor so many slots before now; return it."""
    cursor = slot_of(now()) - slots
    Cursor.objects.update(slot=cursor)
    return cursor


def slots_of(ticks: Iterable[Tick]) -> list[int]:
    return [slot for tick in ticks for slot in range(tick.first_slot, tick.end_slot)]


def silent(tick_id: int, *, seconds: float) -> None:
    sql.query(
        "UPDATE jobs_tick SET sent_at = sent_at - make_interval(secs => %s) WHERE id = %s",
        [seconds, tick_id],
    )


def test_the_slots_up_to_now_are_handed_out_once(acme: Owner) -> None:
    """With the current one; the next pulse begins behind it."""
    start = behind(2)
    [first] = make_ticks()
    tick = Tick.objects.get(id=first)
    assert (tick.first_slot, tick.kind, tick.done_at) == (start, "due", None)
    assert tick.end_slot - slot_of(tick.created_at) in (0, 1)
    assert Cursor.objects.get().slot == tick.end_slot
    make_ticks()
    handed = slots_of(Tick.objects.order_by("id"))
    assert handed == list(range(start, Cursor.objects.get().slot))


def test_what_is_older_than_the_grace_is_to_be_caught_up(settings: Settings) -> None:
    """In one tick; the rest in several that run side by side."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "MISFIRE_GRACE_SECONDS": 30}
    start = behind(1_000)
    make_ticks()
    late, *due = Tick.objects.order_by("id")
    assert (late.kind, late.first_slot) == ("catch_up", start)
    assert {tick.kind for tick in due} == {"due"}
    assert sum(tick.end_slot - tick.first_slot for tick in due) == 60
    assert [tick.end_slot - tick.first_slot for tick in due] == [20, 20, 20]
    assert slots_of([late, *due]) == list(range(start, Cursor.objects.get().slot))


def test_a_pulse_that_meets_another_returns(acme: Owner) -> None:
    """A process that is frozen at it keeps nobody waiting."""
    behind(2)
    with open_transaction("SELECT FROM jobs_cursor FOR UPDATE"):
        assert make_ticks() == []
    assert len(make_ticks()) == 1


def test_a_tick_that_is_silent_is_sent_again() -> None:
    """After 5 s, until it is done."""
    behind(2)
    [sent] = make_ticks()
    assert sent not in make_ticks()
    silent(sent, seconds=6)
    assert sent in make_ticks()
    assert sent not in make_ticks()
    silent(sent, seconds=6)
    Tick.objects.filter(id=sent).update(done_at=now())
    assert sent not in make_ticks()


def test_ticks_that_are_done_are_forgotten_after_a_while(settings: Settings) -> None:
    """Not before jobs can have been written that they did not see; open ones never."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "LATE_COMMIT_SECONDS": 100}
    slot = slot_of(now())
    ages = {age: slot - 2 * age for age in (90, 110)}
    for first in ages.values():
        Tick.objects.create(first_slot=first, end_slot=first + 1, done_at=now(), sent_at=now())
    old = Tick.objects.create(first_slot=slot - 999, end_slot=slot - 998, sent_at=now())
    make_ticks()
    kept = Tick.objects.filter(end_slot__lt=slot - 60)
    assert {tick.first_slot for tick in kept} == {ages[90], old.first_slot}


def test_a_job_that_is_committed_after_a_rest_is_not_missed(far: Job, acme: Owner) -> None:
    """Its due time was in slots of a tick that no worker has read."""
    Job.objects.update(enabled=False)
    trigger_late_commits()
    start = behind(REST_SLOTS)
    make_ticks()
    job = recurring(acme, shard=start % 120, effective_from=moment_of(start - 5))
    assert trigger_late_commits() == 1
    assert runs_of(job) == [moment_of(start)]


def test_a_clock_that_was_set_back_hands_nothing_out_again() -> None:
    """What has been handed out stays so, until the clock is there again."""
    ahead = behind(-100)
    assert make_ticks() == []
    assert Cursor.objects.get().slot == ahead


def test_an_emptied_table_begins_anew() -> None:
    """Due times count from then on."""
    Cursor.objects.all().delete()
    assert make_ticks() == []
    assert abs(Cursor.objects.get().slot - slot_of(now())) <= 1
    assert make_ticks()


def test_the_task_sends_ticks_to_the_systems_workers(acme: Owner) -> None:
    """And a tick, wherever it is run, triggers what is due then."""
    job = recurring(acme)
    minute = slot_of(now()) // 120 * 120
    Cursor.objects.update(slot=minute)
    sent = tasks.pulse()
    assert [message["headers"]["task"] for message in messages("system")] == [
        "fairshift.system.tick"
    ] * len(sent)
    assert sum(tasks.tick(tick_id) for tick_id in sent) >= 1
    assert moment_of(minute) in runs_of(job)


def test_a_tick_that_somebody_is_at_is_not_waited_for() -> None:
    """The cursor goes on, whatever transaction holds a tick for however long."""
    behind(2)
    [first] = make_ticks()
    silent(first, seconds=6)
    start = behind(2)
    with row_held("jobs_tick", first):
        [second] = make_ticks()
    assert second != first
    assert Cursor.objects.get().slot > start
    assert first in make_ticks()


def test_ticks_do_not_stand_behind_what_has_piled_up() -> None:
    """What beat sends is behind them, however much of it there is."""
    make_missing()
    entries = PeriodicTask.objects.filter(name__startswith="fairshift: ")
    for entry in entries:
        for _ in range(3):
            current_app.send_task(entry.task, queue="system", priority=entry.priority)
    behind(2)
    [sent] = tasks.pulse()
    first, *others = messages("system")
    assert (first["headers"]["task"], first["headers"]["argsrepr"]) == (
        "fairshift.system.tick",
        f"[{sent}]",
    )
    assert len(others) == 3 * len(entries) > 0
