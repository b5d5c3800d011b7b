"""jobs/recurring/misfire.py and pause.py: what nobody was there to run is run late or recorded."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.sql import now
from jobs.models import AuditEntry, Job, Missed, Owner, Run, Tick
from jobs.recurring import misfire
from jobs.recurring.misfire import catch_up, judge_locked, record_pauses
from jobs.recurring.pause import pause_jobs
from jobs.schedules import due_times
from jobs.schedules.phases import MINUTE
from jobs.schedules.spans import schedule_of
from tests.jobs.recurring.scenes import OLD, at, recurring, runs_of, tick_of
from tests.jobs.scenes import at_once, row_held, without_triggers


def missed(start: datetime, end: datetime) -> int:
    """Catch up with a span in which nobody was there; return how many runs that made."""
    return catch_up(tick_of(start, end, kind=Tick.Kind.CATCH_UP))


def records(job: Job) -> list[tuple[datetime, datetime, int, str]]:
    rows = Missed.objects.filter(job=job).order_by("first_at")
    return list(rows.values_list("first_at", "last_at", "count", "reason"))


@pytest.mark.parametrize(
    ("fields", "in_time_from", "runs", "recorded"),
    [
        ({"misfire": "skip"}, None, [], [(0, 9, 10, "outage")]),
        ({"misfire": "once"}, None, [9], [(0, 8, 9, "outage")]),
        ({"misfire": "all"}, None, list(range(10)), []),
        ({"misfire": "all", "misfire_cap": 3}, None, [7, 8, 9], [(0, 6, 7, "cap")]),
        ({"misfire": "all"}, 6.5, [7, 8, 9], [(0, 6, 7, "deadline")]),
        (
            {"misfire": "all", "misfire_cap": 2},
            6.5,
            [8, 9],
            [(0, 6, 7, "deadline"), (7, 7, 1, "cap")],
        ),
        ({"misfire": "once"}, 60, [], [(0, 9, 10, "deadline")]),
        ({"misfire": "skip"}, 60, [], [(0, 9, 10, "outage")]),
    ],
)
def test_each_job_by_its_own_policy(
    acme: Owner,
    fields: dict[str, Any],
    in_time_from: float | None,
    runs: list[int],
    recorded: list[Any],
) -> None:
    """Skip runs no missed due time, once the latest, all the latest up to the cap.

    No due time past the job's deadline runs. A record has the count of one span and reason.
    """
    if in_time_from is not None:
        deadline = (now() - at(in_time_from)).total_seconds()
        fields = {**fields, "misfire_deadline_seconds": deadline}
    job = recurring(acme, **fields)
    assert missed(at(0), at(10)) == len(runs)
    assert runs_of(job) == [at(minute) for minute in runs]
    assert records(job) == [(at(a), at(b), n, why) for a, b, n, why in recorded]


def test_again_changes_nothing(acme: Owner) -> None:
    """The tick is done; another one over the same slots finds all accounted for."""
    jobs = [recurring(acme, misfire=policy) for policy in ("skip", "once", "all")]
    tick = tick_of(at(0), at(10), kind=Tick.Kind.CATCH_UP)
    assert catch_up(tick) == 11
    before = [(runs_of(job), records(job)) for job in jobs]
    tick.refresh_from_db()
    assert tick.done_at is not None and catch_up(tick) == 0
    assert missed(at(0), at(10)) == 0
    assert [(runs_of(job), records(job)) for job in jobs] == before


def test_a_killed_one_goes_on_where_it_was(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunk by chunk: what is committed is not done again, what is not is done whole."""
    jobs = [recurring(acme, misfire="all") for _ in range(5)]
    monkeypatch.setattr(misfire, "CHUNK", 2)
    tick = tick_of(at(0), at(3), kind=Tick.Kind.CATCH_UP)
    chunks = iter(range(9))

    def die_in_the_second(*_: Any) -> int:
        if next(chunks) == 1:
            raise ConnectionError
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(misfire, "send_hints", die_in_the_second)
        with pytest.raises(ConnectionError):
            catch_up(tick)
    tick.refresh_from_db()
    assert (tick.after_job, tick.done_at) == (jobs[1].pk, None)
    assert [len(runs_of(job)) for job in jobs] == [3, 3, 0, 0, 0]
    catch_up(tick)
    assert [len(runs_of(job)) for job in jobs] == [3] * 5


def test_two_workers_at_one_tick_do_it_once(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """Who comes second leaves it to the first."""
    jobs = [recurring(acme, misfire="once") for _ in range(30)]
    tick = tick_of(at(0), at(10), kind=Tick.Kind.CATCH_UP)
    counts = at_once(*[lambda: catch_up(tick)] * 3)
    assert sum(counts) == 30  # type: ignore[arg-type]
    assert {len(runs_of(job)) for job in jobs} == {1}
    assert {tuple(row[2:]) for job in jobs for row in records(job)} == {(9, "outage")}


def test_a_job_that_somebody_holds_is_judged_when_it_is_free(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """Its neighbours do not wait for it; its own tick has the same span."""
    held, other = (recurring(acme, misfire="all") for _ in range(2))
    with row_held("jobs_job", held.pk):
        assert missed(at(0), at(3)) == 3
        [left] = Tick.objects.filter(done_at=None)
        assert judge_locked(left.pk) == 0
    assert (runs_of(held), len(runs_of(other))) == ([], 3)
    assert judge_locked(left.pk) == 3
    assert judge_locked(left.pk) == 0
    assert runs_of(held) == [at(0), at(1), at(2)]
    left.refresh_from_db()
    assert left.done_at is not None


# --- pauses --------------------------------------------------------------------------------


def paused(job: Job, since: datetime, until: datetime | None, **more: Any) -> None:
    """Stand where somebody has paused a job at that time."""
    facts = {"paused_from": since, "paused_until": until, **more}
    with without_triggers():
        Job.objects.filter(pk=job.pk).update(**facts)


def test_a_pause_is_one_record_when_it_is_over(acme: Owner) -> None:
    """From when it began until it ended, by its time or by somebody; then it is closed."""
    ended, resumed = recurring(acme), recurring(acme)
    paused(ended, at(0, seconds=1), at(5))
    paused(resumed, at(0), None, effective_from=at(3, seconds=1))
    assert record_pauses() == 2
    assert records(ended) == [(at(1), at(4), 4, "paused")]
    assert records(resumed) == [(at(0), at(3), 4, "paused")]
    assert record_pauses() == 0
    assert not Job.objects.exclude(paused_from=None).exists()


def test_a_pause_that_met_nothing_leaves_no_record(acme: Owner) -> None:
    """Nor does one that goes on."""
    short, long = recurring(acme), recurring(acme)
    paused(short, at(0, seconds=1), at(0, seconds=59))
    paused(long, at(0), now() + timedelta(hours=1))
    assert record_pauses() == 1
    assert records(short) == records(long) == []
    long.refresh_from_db()
    assert long.paused_from == at(0)


def test_whoever_pauses_a_job_begins_a_pause(acme: Owner) -> None:
    """The table sees to it: a bulk, the admin and raw SQL are the same to it."""
    job, made_so = recurring(acme), recurring(acme, paused_until=now() + timedelta(hours=1))
    made_so.refresh_from_db()
    assert made_so.paused_from is not None
    Job.objects.filter(pk=job.pk).update(paused_until=now() + timedelta(hours=1))
    job.refresh_from_db()
    began = job.paused_from
    assert began is not None and abs(now() - began) < timedelta(minutes=1)
    Job.objects.filter(pk=job.pk).update(paused_until=now() + timedelta(hours=2))
    job.refresh_from_db()
    assert job.paused_from == began
    Job.objects.filter(pk=job.pk).update(interval_minutes=7)
    job.refresh_from_db()
    assert job.paused_from is not None and job.paused_from > began
    Job.objects.filter(pk=job.pk).update(paused_until=None)
    assert record_pauses([job.pk]) == 1
    Job.objects.filter(pk=job.pk).update(paused_until=now() - timedelta(hours=2))
    job.refresh_from_db()
    assert job.paused_from is None


def test_switching_off_ends_a_pause(acme: Owner) -> None:
    """What is off misses nothing."""
    job = recurring(acme)
    paused(job, at(0), at(525_600 * 20), enabled=False, effective_from=at(2, seconds=30))
    assert record_pauses() == 1
    assert records(job) == [(at(0), at(2), 3, "paused")]


def test_a_pause_ends_where_the_job_was_switched_off(acme: Owner) -> None:
    """Whatever is written of it after that; and our own note of that changes nothing of it."""
    job = recurring(acme)
    paused(job, at(0), at(525_600 * 20))
    Job.objects.filter(pk=job.pk).update(enabled=False)
    job.refresh_from_db()
    off_at = job.effective_from
    assert abs(now() - off_at) < timedelta(minutes=1)
    Job.objects.filter(pk=job.pk).update(name="renamed", paused_until=None)
    job.refresh_from_db()
    assert job.effective_from == off_at < job.changed_at
    changed_at = job.changed_at
    assert record_pauses() == 1
    job.refresh_from_db()
    assert (job.paused_from, job.changed_at) == (None, changed_at)
    [(_, last, count, reason)] = records(job)
    assert reason == "paused" and last <= off_at and count == (last - at(0)) / MINUTE + 1


def test_an_outage_in_a_pause_is_the_pause(acme: Owner) -> None:
    """Whether the pause goes on, is over, or is recorded already: each due time in one record."""
    going_on, over, closed = (recurring(acme, misfire="all") for _ in range(3))
    for job in (going_on, over, closed):
        paused(job, at(3), at(6) if job is not going_on else now() + timedelta(hours=1))
    assert record_pauses([closed.pk]) == 1
    missed(at(0), at(9))
    record_pauses()
    after = [at(6), at(7), at(8)]
    assert [runs_of(job) for job in (going_on, over, closed)] == [[], after, after]
    before, inside = (at(0), at(2), 3, "paused"), (at(3), at(5), 3, "paused")
    assert records(over) == records(closed) == [before, inside]
    assert records(going_on) == [before]


# --- every due time ------------------------------------------------------------------------

minutes = st.integers(-20, 200)
jobs_facts = st.fixed_dictionaries(
    {
        "misfire": st.sampled_from(["skip", "once", "all"]),
        "misfire_cap": st.integers(1, 12),
        "misfire_deadline_seconds": st.none() | st.floats(1e6, 1e9),
        "effective_from": st.one_of(st.just(OLD), minutes.map(at)),
        "start_at": st.none() | minutes.map(at),
        "end_at": st.none() | minutes.map(at),
    },
) | st.just({})
kinds = st.one_of(
    st.builds(
        lambda n, phase, shard: {
            "interval_minutes": n,
            "phase": phase % n,
            "shard": shard,
        },
        st.integers(1, 40),
        st.integers(0, 39),
        st.integers(0, 119),
    ),
    st.builds(
        lambda cron, zone, smooth, shard: {
            "schedule": "cron",
            "cron": cron,
            "zone": zone,
            "smooth": smooth,
            "shard": shard,
        },
        st.sampled_from(["* * * * *", "*/5 * * * *", "3,7,50 12-14 * * *"]),
        st.sampled_from(["", "America/New_York"]),
        st.booleans(),
        st.integers(0, 119),
    ),
    st.builds(lambda once: {"schedule": "once", "once_at": once}, minutes.map(at)),
)
cuts = st.lists(st.integers(0, 180 * 120), min_size=2, max_size=5, unique=True).map(sorted)


@settings(
    max_examples=settings.default.max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    many=st.lists(st.tuples(jobs_facts, kinds), min_size=1, max_size=6),
    slots=cuts,
    pause=st.none() | st.tuples(st.integers(0, 179), st.integers(1, 60)),
)
def test_every_due_time_is_a_run_or_in_one_record(
    acme: Owner,
    many: list[tuple[dict[str, Any], dict[str, Any]]],
    slots: Sequence[int],
    pause: tuple[int, int] | None,
) -> None:
    """However the outage is cut into ticks; and nothing happens at a time that is not due (G12)."""
    with transaction.atomic():
        jobs = [recurring(acme, **facts, **kind) for facts, kind in many]
        if pause:
            # A schedule that is changed in a pause begins it anew.
            since = min(jobs[0].effective_from, at(pause[0]))
            paused(jobs[0], at(pause[0], seconds=0.25), at(sum(pause)), effective_from=since)
            jobs[0].refresh_from_db()
        edges = [at(seconds=slot / 2) for slot in slots]
        for start, end in pairwise(edges):
            missed(start, end)
        record_pauses()
        for job in jobs:
            _hold(job, edges[0], edges[-1], pause if job is jobs[0] else None)
        transaction.set_rollback(True)
    assert not Run.objects.exists()


def _hold(job: Job, start: datetime, end: datetime, pause: tuple[int, int] | None) -> None:
    schedule = schedule_of(Job.objects.values().get(pk=job.pk))
    delay = timedelta(seconds=schedule.shard / 2 if schedule.smooth else 0)
    due = [
        moment
        for moment in due_times(schedule, start=at(-60), end=at(300))
        if moment >= job.effective_from
    ]
    runs, spans = runs_of(job), records(job)
    assert set(runs) <= set(due)
    for first, last, count, _ in spans:
        assert count == sum(first <= moment <= last for moment in due)
        assert {first, last} <= set(due)
    for moment in due:
        inside = sum(first <= moment <= last for first, last, _, _ in spans)
        is_in_pause = pause is not None and at(pause[0], seconds=0.25) <= moment < at(sum(pause))
        if start <= moment + delay < end or is_in_pause:
            assert inside + runs.count(moment) == 1, moment
        else:
            assert inside + runs.count(moment) == 0, moment
        assert not (is_in_pause and moment in runs)
    assert Run.objects.filter(job=job).count() == len(runs)


# --- paused by an operator ------------------------------------------------------------------


def test_jobs_are_paused_and_resumed(acme: Owner) -> None:
    """All of them at once; each has its entry in the audit."""
    ann = User.objects.create_user("ann")
    jobs = [recurring(acme), recurring(acme, schedule="seconds", interval_seconds=7)]
    ids = [job.pk for job in jobs]
    until = now() + timedelta(hours=1)
    assert pause_jobs(ids, until=until, actor=ann, reason="rollout") == 2
    assert list(Job.objects.values_list("paused_until", flat=True)) == [until, until]
    assert not Job.objects.filter(paused_from=None).exists()
    assert pause_jobs([*ids, ids[-1] + 1], until=None) == 2
    assert not Job.objects.exclude(paused_until=None).exists()
    entries = AuditEntry.objects.filter(object_id=str(ids[0])).order_by("pk")
    written = [(it.action, it.actor_name, it.reason, it.details["until"]) for it in entries]
    assert written == [("pause", "ann", "rollout", until.isoformat()), ("resume", "", "", None)]
