"""jobs/system/sweep.py: what is committed and has no hint is found and published."""

from uuid import UUID

import pytest
import redis
from pytest_django import Settings

from fleet import BrokerUnavailable, Refusal
from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Outbox, Owner, Run
from jobs.runs import dispatch
from jobs.system import sweep
from jobs.system.sweep import (
    prime,
    publish_after_flush,
    publish_outbox,
    publish_overdue,
    sweep_hints,
)
from tests.jobs.scenes import age, ask, hang, hinted, living_worker, lose_hints, submitted

NOTHING = {"flushed": 0, "outbox": 0, "overdue": 0, "freed": 0, "notified": 0}


@pytest.fixture(autouse=True)
def known_epoch(committed: None, broker: redis.Redis) -> None:
    """The broker has been swept before."""
    assert publish_after_flush() == 0


def wait(run: Run, *, seconds: float) -> None:
    """Let a queued run have waited so long, and its hint be overdue."""
    age(run, "queued_at", seconds=seconds)
    age(run, "hint_check_at", seconds=seconds - 30)


def put_back_in_outbox(runs: list[Run], *, seconds: float) -> None:
    """Stand where a process died between commit and publish, so long ago."""
    sql.query(
        "INSERT INTO jobs_outbox (run_ids, created_at) "
        "VALUES (%s, clock_timestamp() - make_interval(secs => %s))",
        [[run.id for run in runs], seconds],
    )


def test_the_outbox_is_published_when_its_writer_had_its_time(acme: Owner) -> None:
    """A batch younger than a sweep is still its writer's own."""
    old, young = submitted(acme, 2), submitted(acme, 3)
    lose_hints()
    put_back_in_outbox(old, seconds=3)
    put_back_in_outbox(young, seconds=1)
    assert publish_outbox() == 2
    assert hinted() == [run.id for run in old]
    assert [row.run_ids for row in Outbox.objects.all()] == [[run.id for run in young]]


def test_one_transaction_publishes_a_bounded_number_of_runs(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch that passes the bound is published whole; the next transaction continues."""
    monkeypatch.setattr(sweep, "CHUNK", 3)
    runs = submitted(acme, 7)
    lose_hints()
    for batch in (runs[:1], runs[1:4], runs[4:5], runs[5:]):
        put_back_in_outbox(batch, seconds=60)
    counts: list[int] = []

    def counted(run_ids: list[UUID]) -> int:
        counts.append(len(run_ids))
        return dispatch.publish_slices(run_ids)

    monkeypatch.setattr(sweep, "publish_slices", counted)
    assert publish_outbox() == 7
    assert counts == [4, 3]
    assert hinted() == [run.id for run in runs]


def test_what_is_published_of_a_batch_stays_so(
    acme: Owner, broker: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a later slice fails, only the rest stays in the outbox; earlier batches are gone."""
    monkeypatch.setattr(dispatch, "SLICE", 2)
    first, second = submitted(acme, 2), submitted(acme, 3)
    lose_hints()
    put_back_in_outbox(first, seconds=60)
    put_back_in_outbox(second, seconds=60)
    settings.FAIRSHIFT = {"PUBLISH_TIMEOUT_SECONDS": 0.2}
    dispatch.broker.cache_clear()
    passes = iter(range(10))

    def hang_before_the_third(_point: str) -> None:
        if next(passes) == 2:
            broker.client_pause(500)

    monkeypatch.setattr(dispatch, "crash_point", hang_before_the_third)
    with pytest.raises(BrokerUnavailable, match="1 hint not published"):
        publish_outbox()
    assert [row.run_ids for row in Outbox.objects.all()] == [[second[2].id]]
    dispatch.broker.cache_clear()
    assert hinted() == [run.id for run in [*first, *second[:2]]]


def test_after_a_flush_every_queued_run_is_published(acme: Owner, broker: redis.Redis) -> None:
    """Blocked and delayed ones are not; and only once."""
    runs = submitted(acme, 3)
    submitted(acme, 1, countdown=60)
    [blocked] = submitted(acme)
    Run.objects.filter(id=blocked.id).update(blocked_by="cap")
    broker.flushdb()
    assert publish_after_flush() == 3
    assert hinted() == [run.id for run in runs]
    assert publish_after_flush() == 0


def test_a_flush_in_the_middle_of_the_rebuild_begins_it_again(
    acme: Owner, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queues have all hints only if no other epoch has begun meanwhile."""
    runs = submitted(acme, 3)
    broker.flushdb()

    def flushed_behind(run_ids: list[object]) -> int:
        count = dispatch.publish(run_ids)  # type: ignore[arg-type]
        broker.flushdb()
        dispatch.owners().epochs(timeout=5)
        return count

    with monkeypatch.context() as patch:
        patch.setattr("jobs.system.sweep.publish", flushed_behind)
        publish_after_flush()
    assert hinted() == []
    assert publish_after_flush() == 3
    assert hinted() == [run.id for run in runs]


def test_a_rebuild_that_was_not_finished_begins_again(acme: Owner, broker: redis.Redis) -> None:
    """That a queue was told of its owners is not that it has all hints."""
    runs = submitted(acme, 3)
    broker.flushdb()
    assert publish_after_flush(seconds=-1) == 0
    assert all(epoch.is_told for epoch in dispatch.owners().epochs(timeout=5).values())
    assert publish_after_flush() == 3
    assert hinted() == [run.id for run in runs]


def test_a_worker_that_cannot_tell_leaves_it_to_the_sweep(
    broker: redis.Redis, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Its I/O thread goes on: what has failed is asked for again."""
    hang(broker, settings)
    prime()
    assert "the sweep will fill the queues that were emptied" in caplog.text
    dispatch.broker.cache_clear()


def test_an_overdue_hint_is_published_again(acme: Owner) -> None:
    """Once it has waited longer than a lease: a younger one is on its way."""
    runs = submitted(acme, 3)
    lose_hints()
    assert publish_overdue() == 0
    for run in runs:
        wait(run, seconds=60)
    assert publish_overdue() == 3
    assert sorted(hinted()) == [run.id for run in runs]
    assert publish_overdue() == 0


def test_a_lost_hint_is_found_behind_a_backlog(acme: Owner) -> None:
    """Other messages in the queue say nothing of this one."""
    lost, *others = submitted(acme, 3)
    lose_hints()
    dispatch.publish([run.id for run in others])
    wait(lost, seconds=31)
    assert publish_overdue() == 1
    assert hinted()[-1] == lost.id


def test_a_long_wait_is_not_filled_with_doubles(acme: Owner) -> None:
    """The pause before a run is published again is as long as it has waited, up to an hour."""
    [run] = submitted(acme)
    for seconds, pause in ((31, 31), (70, 70), (86_400, 3_600)):
        wait(run, seconds=seconds)
        assert publish_overdue() == 1
        run.refresh_from_db()
        assert run.hint_check_at is not None
        assert abs((run.hint_check_at - now()).total_seconds() - pause) < 5
        assert publish_overdue() == 0
    assert hinted() == [run.id]


def test_behind_a_backlog_some_are_published_in_one_sweep(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long queue is not doubled at once; an empty one has lost all."""
    monkeypatch.setattr(sweep, "CHUNK", 3)
    monkeypatch.setattr(sweep, "WITH_BACKLOG", 2)
    for run in submitted(acme, 7):
        wait(run, seconds=60)
    assert publish_overdue() == 2
    lose_hints()
    assert publish_overdue() == 5


def test_what_is_free_again_is_published(acme: Owner) -> None:
    """Though nobody was there to do it when the pause ended."""
    runs = submitted(acme, 2)
    Owner.objects.filter(pk=acme.pk).update(paused_at="2026-01-01T00:00Z")
    assert ask(living_worker(), runs) == [Refusal.WAITS] * 2
    lose_hints()
    assert sweep_hints()["freed"] == 0
    Owner.objects.filter(pk=acme.pk).update(paused_until="2026-01-02T00:00Z")
    assert sweep_hints()["freed"] == 2
    assert hinted() == [run.id for run in runs]


def test_while_the_broker_is_away_the_sweep_says_so(
    acme: Owner, broker: redis.Redis, settings: Settings
) -> None:
    """It forgets nothing: the next one goes on."""
    runs = submitted(acme, 2)
    lose_hints()
    put_back_in_outbox(runs, seconds=60)
    hang(broker, settings)
    with pytest.raises(BrokerUnavailable):
        sweep_hints()
    assert Outbox.objects.count() == 1
    dispatch.broker.cache_clear()
    settings.FAIRSHIFT = {}
    assert sweep_hints() == {**NOTHING, "outbox": 2}
