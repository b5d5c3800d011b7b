"""jobs/recurring/tick.py: all that is due in a tick is triggered, whoever dies at it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.models import Missed, Outbox, Owner, Run, Tick
from jobs.recurring import pulse, tick
from jobs.recurring.due import due_jobs
from jobs.recurring.tick import run_tick
from jobs.runs import dispatch
from jobs.schedules import slot_of
from tests.jobs.recurring.scenes import OLD, at, hinted_of, recurring, runs_of, tick_of
from tests.jobs.scenes import at_once, known, row_held

pytestmark = pytest.mark.usefixtures("committed", "no_ticks")


def test_a_tick_triggers_what_is_due_in_its_slots(acme: Owner, northwind: Owner) -> None:
    """Of every kind, with history and without, and nothing beside; then it is done."""
    kinds = [
        recurring(acme, shard=119),
        recurring(northwind, shard=100, history_policy="none"),
        recurring(acme, schedule="cron", cron="1 12 * * *"),
        recurring(northwind, schedule="once", once_at=at(1)),
    ]
    later = recurring(acme, shard=90)
    made = tick_of(at(0, seconds=50), at(1, seconds=1))
    assert run_tick(made.id) == 4
    assert [runs_of(job) for job in kinds] == [[at(0, seconds=59.5)], [], [at(1)], [at(1)]]
    assert runs_of(later) == []
    assert hinted_of(*kinds) == 3
    assert len(known()) == 4
    made.refresh_from_db()
    assert made.done_at is not None
    assert run_tick(made.id) == 0


def test_chunks_keep_a_jobs_due_times_together(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small they are: each due time has its run, and the tick notes the last job."""
    monkeypatch.setattr(tick, "CHUNK", 4)
    jobs = [recurring(acme, shard=n) for n in range(5)]
    made = tick_of(at(0), at(3))
    assert run_tick(made.id) == 15
    assert [len(runs_of(job)) for job in jobs] == [3] * 5
    made.refresh_from_db()
    assert made.after_job == jobs[-1].id


def test_who_comes_after_a_death_goes_on(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was noted is not done again; a chunk that was not is, and makes nothing twice."""
    monkeypatch.setattr(tick, "CHUNK", 1)
    jobs = [recurring(acme, history_policy="none" if n % 2 else "full") for n in range(5)]
    made = tick_of(at(0), at(1))

    class Death(BaseException):
        pass

    passes: list[str] = []

    def die(name: str) -> None:
        passes.append(name)
        if passes.count("tick.after_publish") == 3:
            raise Death

    monkeypatch.setattr(tick, "crash_point", die)
    with pytest.raises(Death):
        run_tick(made.id)
    made.refresh_from_db()
    assert (made.after_job, made.done_at) == (jobs[1].id, None)
    seen = _seen(made)
    assert run_tick(made.id) == 3
    assert len(known()) == 5
    assert Run.objects.count() == 3
    # The first one's: its jobs were not read again.
    assert _seen(made) == seen


def test_while_one_does_a_chunk_another_leaves_it(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither waits for it nor does it again."""
    recurring(acme)
    made = tick_of(at(0), at(1))
    makes, others = tick.make_due_runs, []

    def make_slowly(due: Any) -> int:
        monkeypatch.setattr(tick, "make_due_runs", makes)
        others.extend(at_once(lambda: run_tick(made.id)))
        return makes(due)

    monkeypatch.setattr(tick, "make_due_runs", make_slowly)
    assert (run_tick(made.id), others) == (1, [0])


def test_who_is_dead_and_not_known_to_be_keeps_a_tick_for_a_while(acme: Owner) -> None:
    """Its connection holds the tick: others leave it, and the server ends a silent one."""
    recurring(acme)
    made = tick_of(at(0), at(1))
    with row_held("jobs_tick", made.id):
        assert run_tick(made.id) == 0
    assert run_tick(made.id) == 1
    [shown] = sql.query("SHOW idle_in_transaction_session_timeout")
    assert list(shown.values()) == ["0"]


def test_while_the_broker_is_away_rows_are_made_and_the_tick_waits(
    acme: Owner, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hints of rows stay in the outbox. Only those without are repeated, by the tick's next run."""

    def away(*_args: Any, **_options: Any) -> None:
        raise BrokerUnavailable("away")

    kept, unkept = recurring(acme), recurring(acme, history_policy="none")
    made = tick_of(at(0), at(1))
    with monkeypatch.context() as patch:
        patch.setattr(dispatch.broker(), "publish", away)
        with pytest.raises(BrokerUnavailable):
            run_tick(made.id)
    assert runs_of(kept) == [at(0)]
    assert Outbox.objects.get().run_ids == [Run.objects.get(job=kept).id]
    made.refresh_from_db()
    assert made.done_at is None
    assert run_tick(made.id) == 1
    assert len(known()) == 1  # the row's own hint is the sweep's
    assert runs_of(unkept) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job.delete(),
        lambda job: type(job).objects.filter(pk=job.pk).update(enabled=False),
        lambda job: type(job).objects.filter(pk=job.pk).update(interval_minutes=7, phase=3),
    ],
)
def test_a_job_counts_as_it_is_when_its_tick_reads_it(
    acme: Owner, change: Callable[[Any], Any]
) -> None:
    """Deleted, off or with another schedule in the second before: it is not triggered."""
    change(recurring(acme))
    assert run_tick(tick_of(at(0), at(1)).id) == 0


def test_a_job_that_was_paused_after_it_was_due_still_runs(acme: Owner) -> None:
    """A pause begins when it begins, not a second before."""
    job = recurring(acme, paused_until=at(60))
    type(job).objects.filter(pk=job.pk).update(paused_from=at(0, seconds=0.1))
    assert run_tick(tick_of(at(0), at(2)).id) == 1
    assert runs_of(job) == [at(0)]


def test_a_tick_that_catches_up_is_judged_by_the_jobs_policy(acme: Owner) -> None:
    """Handed to those who do that, with what it has seen."""
    job = recurring(acme, misfire="skip", interval_minutes=60, effective_from=OLD)
    made = tick_of(at(-61), at(1), kind=Tick.Kind.CATCH_UP)
    run_tick(made.id)
    made.refresh_from_db()
    assert made.done_at is not None
    assert _seen(made)
    assert runs_of(job) == []
    assert sum(Missed.objects.values_list("count", flat=True)) == 2


def _seen(made: Tick) -> str:
    [row] = sql.query("SELECT seen::text FROM jobs_tick WHERE id = %s", [made.id])
    return str(row["seen"])


def test_a_job_that_somebody_holds_keeps_no_other_waiting(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets a tick of its own, which is sent until its due time has its run."""
    monkeypatch.setattr(sql, "_BOUNDS", sql._BOUNDS.replace("2s", "50ms"))
    monkeypatch.setattr(pulse, "PATIENCE_SECONDS", 0.0)
    now = datetime.now(tz=UTC)
    held, beside = (recurring(acme, overlap="skip", **_minutely(now)) for _ in range(2))
    free, unkept = (
        recurring(acme, history_policy=kept, **_minutely(now)) for kept in ("full", "none")
    )
    due = now.replace(second=0, microsecond=0)
    with row_held("jobs_job", held.id):
        assert run_tick(tick_of(due, due + timedelta(seconds=1)).id) == 3
        assert [runs_of(job) for job in (held, beside, free, unkept)] == [[], [due], [due], []]
        [left] = Tick.objects.filter(done_at=None)
        assert left.kind == Tick.Kind.HELD
        assert run_tick(left.id) == 0
    assert left.id in pulse.make_ticks()
    assert run_tick(left.id) == 1
    assert runs_of(held) == [due]
    assert not Tick.objects.filter(kind=Tick.Kind.HELD, done_at=None).exists()


def test_what_was_held_for_long_has_been_missed(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if nobody had been there: the job's policy decides, and what does not run is recorded."""
    monkeypatch.setattr(sql, "_BOUNDS", sql._BOUNDS.replace("2s", "50ms"))
    job = recurring(acme, overlap="skip", misfire="skip")
    with row_held("jobs_job", job.id):
        for _ in range(2):
            tick.make_due_runs(due_jobs(slot_of(at(3)), slot_of(at(4))))
    [left] = Tick.objects.filter(done_at=None)
    assert run_tick(left.id) == 0
    [missed] = Missed.objects.all()
    assert (missed.job, missed.first_at, missed.count, missed.reason) == (job, at(3), 1, "outage")


def _minutely(now: datetime) -> dict[str, Any]:
    return {"schedule": "cron", "cron": "* * * * *", "effective_from": now - timedelta(hours=1)}
