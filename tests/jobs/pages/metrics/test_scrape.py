"""jobs/pages/metrics/scrape.py: what PostgreSQL and Redis know, as far as they answer."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

import tests.flows.tasks  # noqa: F401  registers the task with a secret
from fleet import Kind
from jobs import Waves, submit, submit_many
from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Leader, Owner, Rollout, Worker
from jobs.owners.fair_queue import publish_all_settings
from jobs.owners.limits import pause_owner
from jobs.pages.metrics.families import BY_NAME, PREFIX
from jobs.pages.metrics.queues import EVENTS
from jobs.pages.metrics.scrape import REDIS_SECONDS, scraped
from jobs.runs.recording import record
from tests.jobs.broken import all_have_waited
from tests.jobs.pages.metrics.scraping import (
    NOWHERE,
    ask,
    parsed,
    redis_at,
    secret_of,
    series,
    value,
)
from tests.jobs.scenes import admitted, keep_beating, living_worker, submitted, told
from tests.jobs.system.rollups.minutes import ended, minutes_ago, rolled_up
from tests.proxy import Faults, Proxy

pytestmark = pytest.mark.usefixtures("committed", "broker")


def test_every_family_of_the_catalogue_is_exported(acme: Owner, no_ticks: None) -> None:
    """And none that is not in it: rules and dashboards are checked against the catalogue."""
    Owner.objects.filter(pk=acme.pk).update(wait_objective_seconds=1)
    ended(acme, minutes_ago(2))
    rolled_up()
    submitted(acme)
    found = {name for name, _labels in series()}
    endings = ("_bucket", "_count", "_sum", "_created")
    families = {name for name in found if not name.endswith(endings)} | {
        name.rpartition("_")[0] for name in found if name.endswith(("_bucket",))
    }
    assert families == {each.full_name.removeprefix(PREFIX) for each in BY_NAME.values()}


def test_counters_are_there_from_the_start() -> None:
    """With 0: Prometheus sees no rise in a series that begins above 0."""
    found = series()
    assert value(found, "submitted_total") == value(found, "started_total") == 0
    for outcome in ("succeeded", "failed", "retrying", "cancelled", "expired"):
        assert value(found, "outcomes_total", outcome=outcome) == 0
    for reason in ("outage", "cap", "deadline", "overlap", "paused", "window"):
        assert value(found, "missed_spans_total", reason=reason) == 0
    for event in EVENTS:
        assert value(found, "queue_messages_total", queue="jobs", event=event) == 0


def test_what_ended_is_counted(acme: Owner, northwind: Owner) -> None:
    """By owner, queue and outcome, with histograms of times."""
    at = minutes_ago(2)
    for _ in range(3):
        ended(acme, at)
    ended(northwind, at, Kind.FAILED, error_type="OSError")
    rolled_up()
    found = series()
    acme_jobs = {"owner": "acme", "queue": "jobs"}
    assert value(found, "outcomes_total", outcome="succeeded") == 3
    assert value(found, "outcomes_total", outcome="failed") == 1
    assert value(found, "owner_outcomes_total", **acme_jobs, outcome="succeeded") == 3
    assert value(found, "owner_started_total", **acme_jobs) == 3
    for of in ("wait", "run"):
        assert value(found, f"{of}_seconds_count", **acme_jobs) == 3
        assert value(found, f"{of}_seconds_bucket", **acme_jobs, le="+Inf") == 3
    assert value(found, "run_seconds_bucket", **acme_jobs, le="0.05") == 3


def test_queues_and_owners_are_those_of_redis(acme: Owner, northwind: Owner) -> None:
    """Backlog, waits, turns, and the share by weight."""
    submitted(acme, 3)
    submitted(northwind, 2)
    publish_all_settings()
    all_have_waited(seconds=100)
    found = series()
    assert value(found, "queue_ready", queue="jobs") == 5
    assert value(found, "queue_eligible_owners", queue="jobs") == 2
    assert 100 <= value(found, "queue_oldest_wait_seconds", queue="jobs") < 160
    assert value(found, "queue_messages_total", queue="jobs", event="published") == 5
    assert value(found, "owner_backlog", owner="acme") == 3
    assert value(found, "owner_takes_turns", owner="acme") == 1
    assert value(found, "owner_share_entitled", owner="acme") == 0.75
    assert value(found, "owner_share_entitled", owner="northwind") == 0.25
    assert value(found, "owner_backlog", owner="(other)") == 0


def test_each_problem_of_the_installation_is_a_sample(acme: Owner) -> None:
    """By its code and level, while it lasts. What is about one owner is none."""
    keep_beating()
    living_worker("w1@here")
    living_worker("system@here", queues=("system",))
    pause_owner(acme, reason="stocktaking")
    submitted(acme)
    publish_all_settings()
    all_have_waited(seconds=400)
    assert problems() == set()
    living_worker("lost@here")
    Worker.objects.filter(hostname="lost@here").update(heartbeat_at=now() - timedelta(minutes=2))
    assert problems() == {("lost_worker", "degraded")}


def problems() -> set[tuple[str, str]]:
    """Return the code and level of each problem."""
    found = [dict(labels) for name, labels in series() if name == "problem"]
    return {(labels["code"], labels["level"]) for labels in found}


def test_lags_are_those_of_the_clock(no_ticks: None) -> None:
    """Since the last pulse, and since the first due time that was not triggered."""
    Leader.objects.create(name="beat", holder="b1", until=now() + timedelta(minutes=1))
    found = series()
    assert value(found, "beat_leading") == 1
    assert value(found, "tick_lag_seconds") < 30
    sql.query("UPDATE jobs_cursor SET beat_at = beat_at - interval '90 s', slot = slot - 200")
    sql.query("UPDATE jobs_leader SET until = clock_timestamp()")
    found = series()
    assert value(found, "beat_leading") == 0
    assert 90 <= value(found, "beat_lag_seconds") < 120
    assert 100 <= value(found, "tick_lag_seconds") < 130
    sql.query(
        "INSERT INTO jobs_tick (first_slot, end_slot, kind, after_job) "
        "SELECT slot - 200, slot, 'due', 0 FROM jobs_cursor"
    )
    assert 200 <= value(series(), "tick_lag_seconds") < 230


def test_rollouts_are_counted_by_what_they_wait_for(acme: Owner) -> None:
    """Those that have ended are not; each state is there from the start."""
    assert value(series(), "rollouts", state="stopped") == 0
    rows = [("rolling", False), ("waiting", False), ("waiting", True), ("stopped", True)]
    for state, needs_approval in [*rows, ("ended", False), ("stopped", False)]:
        waves = Waves(sizes=["100%"])
        made = submit_many("tests.add", [{"x": 1, "y": 1}], owner=acme, waves=waves)
        Rollout.objects.filter(pk=made.pk).update(state=state, needs_approval=needs_approval)
    found = series()
    expected = {"rolling": 1, "waiting": 1, "needs_approval": 1, "stopped": 2, "paused": 0}
    assert {one: value(found, "rollouts", state=one) for one in expected} == expected


def test_while_redis_is_away_the_rest_is_answered(acme: Owner) -> None:
    """And the metrics say which part is away."""
    with redis_at(NOWHERE):
        found = series()
    assert value(found, "up", part="redis") == 0
    assert value(found, "up", part="postgresql") == 1
    assert value(found, "workers") == 0
    assert not [name for name, _labels in found if name.startswith("owner_backlog")]


def test_a_hung_redis_does_not_hang_the_scrape(acme: Owner, settings: Any) -> None:
    """Also if publishes may wait for longer: it waits for Redis once, for a short time."""
    with Proxy(settings.REDIS_URL) as proxy, redis_at(proxy.url):
        assert value(series(), "up", part="redis") == 1
        proxy.faults = Faults(lost=1.0, hangs=True)
        began = time.monotonic()
        found = series()
        took = time.monotonic() - began
    assert value(found, "up", part="redis") == 0
    assert value(found, "up", part="postgresql") == 1
    assert REDIS_SECONDS <= took < 6.0


def test_while_postgresql_is_away_the_rest_is_answered(
    acme: Owner, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address of the list gets what Redis knows."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "METRICS_ADDRESSES": ("127.0.0.0/8",)}
    submitted(acme)
    connections["default"].close()
    monkeypatch.setitem(connections.settings["default"], "HOST", "/nowhere")
    try:
        answer = ask(REMOTE_ADDR="127.0.0.1")
    finally:
        monkeypatch.undo()
        connections["default"].close()
    found = parsed(answer.text)
    assert answer.status_code == 200
    assert value(found, "up", part="postgresql") == 0
    assert value(found, "up", part="redis") == 1
    assert value(found, "owner_backlog", owner="acme") == 1


def test_no_secret_is_in_a_metric(acme: Owner) -> None:
    """Not the arguments of a run, not a key, a label or a name that a caller chose, no error."""
    canary = "canary-8f2c"
    [run] = submitted(acme, labels={"customer": canary}, lock=canary)
    sql.query("UPDATE jobs_run SET task = %s WHERE id = %s", [canary, run.id])
    run.refresh_from_db()
    facts = {"error_type": f"{canary}.Error", "error_message": canary, "traceback": canary}
    record([told(admitted(living_worker(f"{canary}@here"), run), Kind.FAILED, **facts)])
    submit("flows.secret", owner=acme, arguments={"value": canary}, idempotency_key=canary)
    sql.query("UPDATE jobs_attempt SET recorded_at = %s", [minutes_ago(2)])
    rolled_up()
    text = scraped().decode()
    assert canary not in text
    assert 'outcome="failed"' in text


def test_a_scrape_with_a_token_leaves_no_barrier(acme: Owner) -> None:
    """All owners are in it, and the next request of the connection sees what is its own."""
    submitted(acme)
    answer = ask(secret=secret_of())
    assert value(parsed(answer.text), "owner_backlog", owner="acme") == 1
    assert sql.query("SELECT current_user = session_user AS is_lowered")[0]["is_lowered"]
