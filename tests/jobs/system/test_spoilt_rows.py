"""One bad row stops no round: raw SQL has spoilt rows, and the good ones beside them are done."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from celery import current_app
from django.db import IntegrityError, transaction
from django_celery_results.models import TaskResult

from fleet import Kind
from jobs.catalog.ends import RunEnd
from jobs.core import sql
from jobs.models import (
    HookCall,
    Job,
    MailDigest,
    MailSubscription,
    Owner,
    Run,
    WebhookDelivery,
    WebhookEndpoint,
)
from jobs.recurring.backfill import backfill, make_pending_runs
from jobs.recurring.misfire import catch_up
from jobs.recurring.tick import run_tick
from jobs.runs.celery_outcomes import notify_missed
from jobs.runs.closing import stop_closed
from jobs.runs.recording import record
from jobs.system import hooks, partitions, promotion, sweep
from jobs.system.notices.mails import send_mail
from jobs.system.reencryption import reencrypt
from jobs.system.rescue import rescue_runs
from jobs.system.retention.rounds import remove_old_history
from jobs.system.rollups.rolling import roll_up
from tests.jobs.keys import KEY_1, use_ring
from tests.jobs.recurring.scenes import at, recurring, runs_of, tick_of, written_raw
from tests.jobs.scenes import (
    admitted,
    ask,
    hinted,
    living_worker,
    lose_hints,
    recorded,
    silence,
    submitted,
    told,
)
from tests.jobs.system.notices.scenes import collect, end_runs, endpoint, subscribe
from tests.jobs.system.retention.old import old_run
from tests.jobs.windows_world import calendar_of, window

pytestmark = pytest.mark.usefixtures("committed")

SPOILT: list[tuple[str, Any]] = [
    ("policy", "[]"),
    ("policy", "null"),
    ("policy", "5"),
    ("policy", '{"time_limit_seconds": "x"}'),
    ("policy", '{"time_limit_seconds": 1e400}'),
    ("policy", '{"soft_time_limit_seconds": {}}'),
    ("policy", '{"backoff_seconds": null}'),
    ("policy", '{"retry_on": 5}'),
    ("policy", '{"give_up_on": [["a"]]}'),
    ("options", "[]"),
    ("options", '"ignore_result"'),
    ("options", '{"ignore_result": [], "chord": 5}'),
    ("labels", "[]"),
    ("labels", "5"),
    ("history", "{}"),
    ("history", "null"),
    ("history", "[]"),
    ("history", '[["queued", "x", ""]]'),
    ("history", '[["queued", 1e400, ""]]'),
    ("history", '[["queued", "x"], ["admitted", "x"], ["admitted", [], {}]]'),
    ("history", '[5, null, {"a": 1}]'),
    ("progress", "5"),
    ("token", 2**31 - 1),
    ("attempt_count", 32_767),
    ("attempt_count", -32_768),
    ("max_attempts", -1),
    ("earlier_attempts", 2**31 - 1),
    ("earlier_attempts", -(2**31)),
    ("payload_key", -5),
    ("error_key", -5),
    ("payload", b""),
    ("queue", ""),
    ("task", ""),
    ("lock_key", "\u202e"),
    ("blocked_by", "nothing"),
    ("window_policy", "nothing"),
    ("owner_id", -1),
    ("job_id", -1),
    ("next_at", "-infinity"),
    ("due_at", "infinity"),
    ("queued_at", "infinity"),
]
"""What raw SQL writes into a column of a run: each into a run of its own, between two good ones."""


class Scene(NamedTuple):
    """Runs, of which all but the first and the last are spoilt before `act`."""

    runs: Sequence[Run]
    act: Callable[[], object]
    is_done: Callable[[Run], bool]


def runs(owner: Owner, **options: Any) -> list[Run]:
    return submitted(owner, len(SPOILT) + 2, **options)


def written(runs: Sequence[Run], **columns: str) -> None:
    """Write these columns of all runs, as SQL."""
    facts = ", ".join(f"{name} = {value}" for name, value in columns.items())
    sql.query(f"UPDATE jobs_run SET {facts} WHERE id = ANY(%s)", [[run.id for run in runs]])


def has_state(*states: str) -> Callable[[Run], bool]:
    return lambda run: run.state in states


def is_hinted(run: Run) -> bool:
    return run.id in hinted()


URL = "https://ci.example/"
AGO = "clock_timestamp() - interval '1 minute'"


def rescue(acme: Owner) -> Scene:
    worker, found = living_worker(), runs(acme, max_attempts=3)
    admissions = [admitted(worker, run) for run in found]
    record([told(one, Kind.STARTED) for one in admissions[::2]])
    silence(worker, seconds=60)
    return Scene(found, rescue_runs, has_state("retrying", "queued"))


def promote(acme: Owner) -> Scene:
    found = runs(acme, countdown=60)
    written(found, next_at=AGO)
    return Scene(found, promotion.promote, has_state("queued"))


def promote_gated(acme: Owner) -> Scene:
    window(calendar_of(acme), opens_in=-600, seconds=86_400)
    return promote(acme)


def gate_changed(acme: Owner) -> Scene:
    found = runs(acme)
    window(calendar_of(acme), opens_in=600, seconds=86_400)
    return Scene(found, promotion.promote, has_state("held"))


def hold_late(acme: Owner) -> Scene:
    window(calendar_of(acme), opens_in=-600, seconds=86_400)
    promotion.promote()
    found = runs(acme)
    written(found, not_after=AGO)
    return Scene(
        found, promotion.promote, lambda run: run.state == "queued" and run.not_after is not None
    )


def expire(acme: Owner) -> Scene:
    found = runs(acme)
    written(found, deadline_at=AGO)
    return Scene(found, promotion.expire, has_state("expired"))


def close(acme: Owner) -> Scene:
    worker, found = living_worker(), runs(acme)
    for run in found:
        admitted(worker, run)
    written(found, stop_at=AGO)
    return Scene(found, stop_closed, has_state("cancelling"))


def admit(acme: Owner) -> Scene:
    worker, found = living_worker(), runs(acme)
    return Scene(found, lambda: ask(worker, found), has_state("admitted"))


def admit_limited(acme: Owner) -> Scene:
    Owner.objects.filter(pk=acme.pk).update(max_running=200)
    window(calendar_of(acme), opens_in=-600, seconds=86_400)
    return admit(acme)


def record_success(acme: Owner) -> Scene:
    return reported(acme, Kind.SUCCEEDED, result=b"1")


def record_failure(acme: Owner) -> Scene:
    return reported(acme, Kind.FAILED, error_type="E", error_message="m", traceback="t")


def record_return(acme: Owner) -> Scene:
    return reported(acme, Kind.GIVEN_BACK, started_at=None)


def reported(acme: Owner, kind: Kind, **facts: Any) -> Scene:
    worker, found = living_worker(), runs(acme)
    facts = {"started_at": time.monotonic(), **facts}
    reports = [told(admitted(worker, run), kind, **facts) for run in found]
    after = "queued" if kind is Kind.GIVEN_BACK else kind.value
    return Scene(found, lambda: record(reports), has_state(after))


def sweep_outbox(acme: Owner) -> Scene:
    found = runs(acme)
    lose_hints()
    sql.query("DELETE FROM jobs_outbox")
    statement = f"INSERT INTO jobs_outbox (run_ids, created_at) SELECT %s::uuid[], {AGO}"
    sql.query(statement, [[run.id for run in found]])
    return Scene(found, sweep.sweep_hints, is_hinted)


def sweep_overdue(acme: Owner) -> Scene:
    found = runs(acme)
    lose_hints()
    written(found, hint_check_at=AGO, not_after="clock_timestamp() + interval '1 day'")
    return Scene(found, sweep.sweep_hints, is_hinted)


def notify(acme: Owner) -> Scene:
    endpoint(acme, URL)
    subscribe(acme)
    worker, found = living_worker(), runs(acme)
    for run in found:
        recorded(admitted(worker, run), Kind.SUCCEEDED)
    told_of = WebhookDelivery.objects.filter
    return Scene(found, collect, lambda run: told_of(data__run=str(run.id)).exists())


def tell_celery(acme: Owner) -> Scene:
    found = runs(acme)
    written(
        found,
        state="'failed'",
        ended_at="clock_timestamp() - interval '5 minutes'",
        options="""'{"ignore_result": false}'""",
    )
    stored = TaskResult.objects.filter
    return Scene(found, notify_missed, lambda run: stored(task_id=run.id).exists())


def count_minutes(acme: Owner) -> Scene:
    worker, found = living_worker(), runs(acme)
    for run in found:
        facts = {"started_at": time.monotonic(), "error_type": "E"}
        recorded(admitted(worker, run), Kind.FAILED, **facts)
    sql.query("UPDATE jobs_attempt SET recorded_at = recorded_at - interval '5 minutes'")
    sql.query("UPDATE jobs_attempt SET queued_at = '-infinity' WHERE run_id = %s", [found[1].id])
    sql.query("UPDATE jobs_attempt SET ended_at = 'infinity' WHERE run_id = %s", [found[2].id])

    def act() -> None:
        for _ in range(3):
            roll_up()

    def is_counted(_run: Run) -> bool:
        [row] = sql.query("SELECT coalesce(sum(count), 0) AS n FROM jobs_rollup WHERE task <> ''")
        return bool(row["n"] >= 2)

    return Scene(found, act, is_counted)


def change_keys(acme: Owner) -> Scene:
    worker, found = living_worker(), runs(acme)
    for run in found:
        recorded(admitted(worker, run), Kind.FAILED, error_type="E", error_message="m")
    return Scene(found, lambda: reencrypt(1), lambda run: run.payload_key == 1)


ROUNDS = (
    *(rescue, promote, promote_gated, gate_changed, hold_late, expire, close),
    *(admit, admit_limited, record_success, record_failure, record_return),
    *(sweep_outbox, sweep_overdue, notify, tell_celery, count_minutes, change_keys),
)


@pytest.fixture(autouse=True)
def _no_traces(request: pytest.FixtureRequest, settings: Any) -> Iterator[None]:
    """A key ring for the round that needs one; afterwards no queue of a spoilt run's name."""
    if request.node.name.endswith("[change_keys]"):
        use_ring(settings, KEY_1)
    yield
    # Celery makes a queue of each name that it is given, and offers that to submits.
    current_app.amqp.queues.pop("", None)


def spoil(run: Run, column: str, value: Any) -> None:
    """Write a column by raw SQL, past all triggers."""
    with transaction.atomic():
        sql.query("SET LOCAL session_replication_role = replica")
        sql.query(f"UPDATE jobs_run SET {column} = %s WHERE id = %s", [value, run.id])


@pytest.mark.parametrize("make", ROUNDS, ids=lambda make: make.__name__)
def test_a_round_does_the_good_runs(
    make: Callable[[Owner], Scene], acme: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """A run that cannot be read is left out or ends, with its error; the next round is silent."""
    scene = make(acme)
    first, *bad, last = scene.runs
    for run, (column, value) in zip(bad, SPOILT, strict=True):
        spoil(run, column, value)
    with caplog.at_level(logging.ERROR):
        scene.act()
    for run in (first, last):
        run.refresh_from_db()
        assert scene.is_done(run), run.state
    failed = Run.objects.filter(id__in=[run.id for run in bad], state="failed")
    assert not failed.filter(error_type="").exists() or make is tell_celery
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        scene.act()
    assert caplog.messages == []


def test_a_run_that_ends_so_says_why(acme: Owner, caplog: pytest.LogCaptureFixture) -> None:
    """In its row, in its history and in the log; a listener hears of its end as of any other."""
    endpoint(acme, URL)
    worker, (lost, full) = living_worker(), submitted(acme, 2)
    admissions = [admitted(worker, run) for run in (lost, full)]
    spoil(lost, "policy", "[]")
    spoil(full, "earlier_attempts", 2**31 - 1)
    record([told(admissions[1], Kind.SUCCEEDED, started_at=time.monotonic(), result=b"1")])
    silence(worker, seconds=60)
    rescue_runs()
    for run in (lost, full):
        run.refresh_from_db()
        assert (run.state, run.moves[-1][2]) == ("failed", "unreadable")
    assert lost.error_type == "ValueError"
    assert lost.error_text == (
        "worker w1@here was lost, and the run's policy cannot be read: policy is no object: []"
    )
    assert full.error_type == "DataError"
    assert full.error_text.startswith("the row of the run cannot be read: DataError: integer out")
    assert f"run {full.id} ends as failed" in caplog.text
    collect()
    assert WebhookDelivery.objects.filter(data__state="failed").count() == 2


SPOILT_JOBS: list[dict[str, Any]] = [
    {"deadline_seconds": "NaN"},
    {"deadline_seconds": "Infinity"},
    {"time_limit_seconds": "Infinity"},
    {"backoff_seconds": "NaN"},
    {"labels": "5"},
    {"max_attempts": 32_767},
    {"retry_on": "{NULL}"},
    {"give_up_on": "{{a},{b}}"},
    {"payload_key": -5},
    {"overlap": "nothing"},
    {"overlap": "skip", "deadline_seconds": "NaN"},
    {"history_policy": "nothing"},
    {"misfire": "nothing"},
    {"misfire_deadline_seconds": "NaN"},
    {"interval_minutes": 0},
    {"interval_minutes": 2**31 - 1},
    {"shard": 32_767},
    {"schedule": "cron", "cron": "nothing"},
    {"schedule": "cron", "cron": "* * * * *", "zone": "Nowhere/At_all"},
]


@pytest.fixture
def jobs_beside(acme: Owner) -> list[Job]:
    """Two good jobs, each due every minute from noon on, and spoilt ones between them."""
    first = recurring(acme, "first")
    for number, columns in enumerate(SPOILT_JOBS):
        written_raw(recurring(acme, f"bad {number}"), **columns)
    return [first, recurring(acme, "last")]


@pytest.mark.usefixtures("no_ticks")
def test_a_tick_triggers_the_good_jobs(
    jobs_beside: list[Job], caplog: pytest.LogCaptureFixture
) -> None:
    """Those whose rows cannot be read are named, once in a minute."""
    made = tick_of(at(0), at(2))
    with caplog.at_level(logging.ERROR):
        run_tick(made.pk)
    assert [runs_of(job) for job in jobs_beside] == [[at(0), at(1)]] * 2
    made.refresh_from_db()
    assert made.done_at is not None
    bad = Job.objects.get(key="bad 0")
    assert caplog.text.count(f"a due time of job {bad.pk} is left out") == 1


@pytest.mark.usefixtures("no_ticks")
def test_missed_due_times_of_good_jobs_are_judged(jobs_beside: list[Job]) -> None:
    """As by their misfire policy: one run for all."""
    made = tick_of(at(0), at(3), kind="catch_up")
    catch_up(made)
    assert [runs_of(job) for job in jobs_beside] == [[at(2)]] * 2
    made.refresh_from_db()
    assert made.done_at is not None


def test_backfills_of_good_jobs_are_made(acme: Owner) -> None:
    """The backfill of a job whose row cannot be read ends."""
    jobs = [recurring(acme, key) for key in ("first", "bad", "last")]
    made = [backfill(job, at(0), at(3)) for job in jobs]
    written_raw(jobs[1], labels="5", time_limit_seconds="NaN", deadline_seconds="NaN")
    for _ in range(2):
        make_pending_runs(seconds=5)
    assert [len(runs_of(job)) for job in jobs] == [3, 0, 3]
    for each in made:
        each.refresh_from_db()
        assert each.done_at is not None


@pytest.mark.parametrize("column", ["events", "tasks", "states"])
@pytest.mark.parametrize("model", [WebhookEndpoint, MailSubscription])
@pytest.mark.parametrize("value", ["{NULL}", "{run.ended,NULL}", "{{a},{b}}"])
def test_lists_of_an_interest_are_flat(
    model: type[Any], column: str, value: str, acme: Owner
) -> None:
    """PostgreSQL refuses others: one would stop the events of all."""
    endpoint(acme, URL)
    subscribe(acme)
    with pytest.raises(IntegrityError, match=f"{column}_is_a_flat_list"), transaction.atomic():
        sql.query(f"UPDATE {model._meta.db_table} SET {column} = %s", [value])


def test_a_mail_that_cannot_be_held_or_written_stops_no_other(
    acme: Owner, caplog: pytest.LogCaptureFixture, mailoutbox: list[Any]
) -> None:
    """The one is named, the other is given up after some failures."""
    names = ("first", "bad", "last")
    mails = [subscribe(acme, name=name) for name in names]
    end_runs(acme)
    collect()
    of = {mail.name: MailDigest.objects.get(subscription=mail) for mail in mails}
    facts = {"held_count": 2**31 - 1, "sending": {"a": 5}, "sending_count": 1}
    MailDigest.objects.filter(pk=of["bad"].pk).update(**facts)
    with caplog.at_level(logging.ERROR):
        end_runs(acme)
        collect()
    assert f"the mail of subscription {mails[1].pk} about" in caplog.text
    assert MailDigest.objects.get(pk=of["last"].pk).held_count == 1
    MailDigest.objects.filter(sending=None).update(sending=[], sending_count=1)
    assert [send_mail(of[name].pk) for name in names] == ["sent", "failed", "sent"]
    assert len(mailoutbox) == 2


def test_a_hook_is_called_for_the_good_ends(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is stored of another call."""
    called: list[str] = []
    is_away = [True]

    def hook(end: RunEnd) -> None:
        if is_away[0]:
            raise OSError("away")
        called.append(end.owner)

    monkeypatch.setattr(hooks, "run_hooks", {"tests.hook": hook})
    monkeypatch.setattr(hooks, "submission_hooks", {})
    monkeypatch.setattr(hooks, "any_hooks", lambda: True)
    hooks.begin_listening()
    end_runs(acme, 6)
    hooks.call_hooks()
    HookCall.objects.update(next_at=sql.now())
    is_away[0] = False
    bad = list(HookCall.objects.order_by("pk").values_list("pk", flat=True))[1:-1]
    spoilt = [("failures", 2**15 - 1), ("failures", 1_200), ("facts", "5"), ("facts", "[]")]
    for key, (column, value) in zip(bad, spoilt, strict=True):
        sql.query(f"UPDATE jobs_hookcall SET {column} = %s WHERE id = %s", [value, key])
    hooks.call_hooks()
    assert called == ["acme", "acme"]


def test_old_history_of_good_runs_is_removed(acme: Owner) -> None:
    """Runs that cannot be read do not keep them."""
    found = [old_run(acme, 400) for _ in range(len(SPOILT) + 2)]
    good = {found[0], found[-1]}
    for run_id, (column, value) in zip(found[1:-1], SPOILT, strict=True):
        if column != "id":
            spoil(Run(id=run_id), column, value)
    remove_old_history()
    assert not Run.objects.filter(id__in=good).exists()


def test_a_day_without_a_partition_does_not_keep_others_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row of that day cannot be moved there, for example."""
    days = []

    def make_day(midnight: Any) -> list[str]:
        days.append(midnight)
        if len(days) == 2:
            raise IntegrityError("a row of this day")
        return [str(len(days))]

    monkeypatch.setattr(partitions, "make_day", make_day)
    with pytest.raises(IntegrityError):
        partitions.make_partitions(days_ahead=2)
    assert len(days) == 4
