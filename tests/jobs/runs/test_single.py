"""jobs/runs/single.py: one run in one statement, the same as by all steps."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import transaction

from jobs import submit
from jobs.core import sql
from jobs.core.errors import IdempotencyConflict
from jobs.core.sql import now
from jobs.models import Outbox, Owner, Run, Target
from jobs.runs import single
from tests.jobs.scenes import at_once, hinted
from tests.jobs.windows_world import calendar_of, freeze

FULL = {
    "priority": 7,
    "deadline_seconds": 60,
    "labels": {"site": "berlin"},
    "lock": "disk",
    "max_attempts": 2,
    "time_limit_seconds": 30,
    "retry_on": ("TimeoutError",),
    "ignore_result": False,
}


def columns(run: Run) -> dict[str, Any]:
    """Return what a row says, without what differs between any two runs."""
    different = {"id", "created_at", "queued_at", "hint_check_at", "deadline_at", "history"}
    values = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    values["payload"] = bytes(values["payload"])
    return {name: value for name, value in values.items() if name not in different}


@pytest.mark.parametrize("options", [{}, FULL], ids=["plain", "full"])
def test_the_returned_run_is_the_stored_one(acme: Owner, options: dict[str, Any]) -> None:
    """Every field, though nothing is read back."""
    run = submit("tests.add", 1, 2, owner="acme", **options)
    stored = Run.objects.get(id=run.id)
    for field in Run._meta.concrete_fields:
        returned, read = (getattr(each, field.attname) for each in (run, stored))
        assert (bytes(returned) if field.attname == "payload" else returned) == (
            bytes(read) if field.attname == "payload" else read
        ), field.attname
    assert run.owner == acme
    assert run == stored and not run._state.adding


@pytest.mark.parametrize("options", [{}, FULL], ids=["plain", "full"])
def test_it_stores_what_all_steps_store(
    acme: Owner, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Which are taken for any other run; nobody can tell by the row."""
    Target.objects.create(owner=acme, name="edge-7")
    short = submit("tests.add", 1, 2, owner=acme, target="edge-7", **options)
    monkeypatch.setattr(single, "_is_usual", lambda *_: False)
    long = submit("tests.add", 1, 2, owner=acme, target="edge-7", **options)
    short, long = Run.objects.get(id=short.id), Run.objects.get(id=long.id)
    assert columns(short) == columns(long)
    for name in ("hint_check_at", "deadline_at", "queued_at"):
        one, other = getattr(short, name), getattr(long, name)
        assert (one and one - short.created_at) == (other and other - long.created_at), name
    assert [(state, cause) for state, _, cause in short.moves] == [
        (state, cause) for state, _, cause in long.moves
    ]


def test_where_calendars_apply_the_gate_decides(acme: Owner) -> None:
    """Also if the caller's owner was read before the first calendar was attached."""
    early = Owner.objects.get(pk=acme.pk)
    freeze(calendar_of(acme))
    assert early.calendar_version == 0
    assert submit("tests.add", 1, 2, owner=early).state == "held"


def test_a_key_makes_one_run(committed: None, acme: Owner, broker: redis.Redis) -> None:
    """However many ask at once; another payload is a conflict."""

    def again() -> Run:
        return submit("tests.add", 1, 2, owner="acme", idempotency_key="once")

    made = at_once(*[again] * 8)
    assert {getattr(run, "id", run) for run in made} == {Run.objects.get().id}
    with pytest.raises(IdempotencyConflict):
        submit("tests.add", 1, 3, owner="acme", idempotency_key="once")
    assert hinted() == [Run.objects.get().id]


def test_a_rolled_back_submit_leaves_nothing(committed: None, acme: Owner) -> None:
    """No run, no outbox row, no key: what never happened can be asked for anew."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():  # noqa: PT012  the act and its end
        submit("tests.add", 1, 2, owner=acme, idempotency_key="gone")
        raise ZeroDivisionError
    assert not Run.objects.exists() and not Outbox.objects.exists()
    submit("tests.add", 3, 4, owner=acme, idempotency_key="gone")
    assert Run.objects.get().arguments[1] == {"x": 3, "y": 4}


def test_ids_rise_with_time(acme: Owner) -> None:
    """The time in them is PostgreSQL's, to the millisecond."""
    runs = [submit("tests.add", 1, 2, owner=acme) for _ in range(3)]
    for run in runs:
        assert run.id.version == 7
        assert run.id.int >> 80 == int(run.created_at.timestamp() * 1000 + 1e-4)
    assert now() - runs[0].created_at < timedelta(seconds=30)


@pytest.mark.usefixtures("committed")
def test_a_process_that_has_submitted_much_plans_no_submit_again(acme: Owner) -> None:
    """Planning takes as long as the statement; and published rows of the outbox are deleted."""
    sql.query(
        "INSERT INTO jobs_outbox (run_ids, created_at)"
        " SELECT '{}', clock_timestamp() FROM generate_series(1, 20_000) RETURNING id"
    )
    sql.query("DELETE FROM jobs_outbox RETURNING id")
    for _ in range(20):
        submit("tests.add", 1, 2, owner=acme)  # the plans of smaller tables are discarded
    before = plans()
    for _ in range(100):
        submit("tests.add", 1, 2, owner=acme)
    generic, custom = (after - earlier for after, earlier in zip(plans(), before, strict=True))
    assert generic > 80 and custom < 20
    assert Outbox.objects.count() < 110


def plans() -> tuple[int, int]:
    """Return how often submits of this connection used a kept plan, and a new one."""
    [row] = sql.query(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
        " WHERE statement LIKE '-- Submit one run%%'"
    )
    return row["generic_plans"], row["custom_plans"]
