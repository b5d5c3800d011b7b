"""jobs/system/rollups/reads.py: what pages read comes from rollups, of the owners asked for."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, transaction

from fleet import Kind
from jobs.core import barrier, sql
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner, Rollup, RollupPosition, RollupTotal
from jobs.system.rollups.histogram import Percentiles, value_of
from jobs.system.rollups.reads import by_owner, entitled_by_owner, failures, last_minutes, minutes
from tests.jobs.system.rollups.late import rolled
from tests.jobs.system.rollups.minutes import MINUTE, ended, minutes_ago, rolled_up

pytestmark = pytest.mark.django_db
AT = datetime.fromisoformat("2026-03-01T12:00:00Z")
HOUR = timedelta(hours=1)
SPAN: dict[str, Any] = {"start": AT, "end": AT + 3 * MINUTE}


@pytest.fixture
def _rollups(acme: Owner, northwind: Owner) -> None:
    """Two minutes of two owners; before and after the span there is more."""
    ran: dict[str, Any] = {"run_buckets": [10, 20], "run_counts": [3, 1]}
    waited: dict[str, Any] = {"wait_buckets": [0], "wait_counts": [4]}
    rolled(acme, AT, count=4, worker_seconds=30.0, **ran, **waited)
    rolled(acme, AT, outcome="failed", error_type="OSError", count=2, worker_seconds=10.0)
    rolled(acme, AT + 2 * MINUTE, outcome="retrying", error_type="OSError", count=5)
    rolled(acme, AT + 2 * MINUTE, outcome="expired", count=1)
    rolled(northwind, AT, count=6, worker_seconds=60.0, task="t2", run_buckets=[30], run_counts=[6])
    rolled(northwind, AT, outcome="failed", error_type="OSError", count=1)
    rolled(acme, AT - MINUTE, count=100, worker_seconds=1e6)
    rolled(acme, AT + 3 * MINUTE, count=100, worker_seconds=1e6)
    totals()


def totals() -> None:
    """Add up the rollups of each minute, as a round does."""
    RollupTotal.objects.all().delete()
    for minute in Rollup.objects.order_by().values_list("minute", flat=True).distinct():
        sql.run("system/rollup_total", {"minute": minute})


@pytest.mark.usefixtures("_rollups")
def test_minutes_have_outcomes_and_percentiles(acme: Owner) -> None:
    """Each minute of the span is there, the empty one too."""
    first, empty, last = minutes(None, **SPAN)
    assert [first.at, empty.at, last.at] == [AT, AT + MINUTE, AT + 2 * MINUTE]
    assert first.outcomes == {State.SUCCEEDED: 10, State.FAILED: 3}
    assert first.run == Percentiles(value_of(30), value_of(30), value_of(30))
    assert first.wait == Percentiles(value_of(0), value_of(0), value_of(0))
    assert (empty.outcomes, empty.wait, empty.run) == ({}, None, None)
    assert last.outcomes == {State.RETRYING: 5, State.EXPIRED: 1}
    [seen, *_] = minutes([acme.pk], **SPAN)
    assert seen.outcomes == {State.SUCCEEDED: 4, State.FAILED: 2}
    assert seen.run == Percentiles(value_of(10), value_of(20), value_of(20))


@pytest.mark.usefixtures("_rollups")
def test_totals_are_not_readable_behind_the_barrier(acme: Owner) -> None:
    """A request for some owners that asks for all fails, and learns nothing of others."""
    barrier.raise_for([acme.pk])
    try:
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            minutes(None, **SPAN)
        assert minutes([acme.pk], **SPAN)[0].outcomes == {State.SUCCEEDED: 4, State.FAILED: 2}
    finally:
        barrier.lower()


@pytest.mark.usefixtures("_rollups")
def test_an_owner_is_entitled_to_its_weight_of_the_minutes_in_which_it_had_work(
    acme: Owner, northwind: Owner
) -> None:
    """Each minute counts by its worker time: an owner that was alone is entitled to all of it."""
    both = entitled_by_owner({}, **SPAN)
    assert both == {acme.pk: 0.75, northwind.pk: 0.25}
    rolled(northwind, AT + MINUTE, worker_seconds=100.0, task="t2")
    totals()
    alone = entitled_by_owner({}, **SPAN)
    assert alone == pytest.approx({acme.pk: 0.375, northwind.pk: 0.625})
    # It waited in both minutes, and got nothing in one; what waits for a moment only, did not.
    since = (now() - AT).total_seconds()
    assert entitled_by_owner({"acme": since}, **SPAN) == pytest.approx(both)
    assert entitled_by_owner({"acme": 1.0}, **SPAN) == pytest.approx(alone)
    assert entitled_by_owner({"acme": since}, start=AT - HOUR, end=AT - HOUR + MINUTE) == {}
    barrier.raise_for([acme.pk])
    try:
        assert entitled_by_owner({"acme": since}, **SPAN) == pytest.approx(both)
    finally:
        barrier.lower()


def test_the_last_minutes_are_not_known_while_the_statistics_lag() -> None:
    """A minute that is not counted two minutes after its end: what ended in it is no 0."""
    position = RollupPosition.objects.create(
        final_until=minutes_ago(9), counted_until=minutes_ago(2)
    )
    assert last_minutes(60) is not None
    position.counted_until = minutes_ago(4)
    position.save()
    assert last_minutes(60) is None


@pytest.mark.usefixtures("committed", "broker")
def test_what_a_round_wrote_is_read(acme: Owner, northwind: Owner) -> None:
    """From an outcome to the page's numbers; the rows of runs are not needed any more."""
    at = minutes_ago(2)
    for kind in (Kind.SUCCEEDED, Kind.FAILED):
        ended(acme, at, kind, error_type="OSError" if kind is Kind.FAILED else "")
    ended(northwind, at)
    rolled_up()
    sql.query("DELETE FROM jobs_attempt; DELETE FROM jobs_run")
    span = last_minutes(5)  # the minute may turn meanwhile
    assert span is not None
    start, end = span
    [minute] = [each for each in minutes([acme.pk], start=start, end=end) if each.outcomes]
    assert minute.at == at
    assert minute.outcomes == {State.SUCCEEDED: 1, State.FAILED: 1}
    [minute] = [each for each in minutes(None, start=start, end=end) if each.outcomes]
    assert minute.outcomes == {State.SUCCEEDED: 2, State.FAILED: 1}
    assert [each.error_type for each in failures(None, start=start, end=end)] == ["OSError"]
    assert {each.owner_id for each in by_owner(None, start=start, end=end)} == {
        acme.pk,
        northwind.pk,
    }
