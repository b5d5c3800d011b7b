"""jobs/prepared.py: a statement about runs is planned once for the partition of their day."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import ProgrammingError, connection, transaction

from jobs import database, prepared
from jobs.ids import new_ids
from jobs.models import Owner, Run
from jobs.partitions import partition_of
from jobs.states import State
from jobs.storing import now
from tests.jobs.test_partitions import stored_at


def queued_at(owner: Owner, *, days: int) -> UUID:
    """Store a queued run whose id is of so many days from now; return its id."""
    run_id = stored_at(owner, now() + timedelta(days=days))
    Run.objects.filter(id=run_id).update(state=State.QUEUED)
    return run_id


def plans() -> int:
    """Return how many statements this session has prepared."""
    return int(database.query("SELECT count(*) AS count FROM pg_prepared_statements")[0]["count"])


def limits(*run_ids: UUID) -> list[object]:
    """Ask for the limits of some runs; that none has any is an answer too."""
    return prepared.run("lock_limited", run_ids, {"ids": list(run_ids)})  # type: ignore[return-value]


def test_runs_of_one_day_share_a_plan(acme: Owner) -> None:
    """Which is made with the first batch, and serves every later one."""
    Owner.objects.update(max_running=1)
    run_ids = [queued_at(acme, days=0) for _ in range(3)]
    before = plans()
    assert len(limits(*run_ids[:1])) == 1
    assert plans() == before + 1
    assert len(limits(*run_ids)) == 1
    assert plans() == before + 1


def test_runs_of_two_days_and_without_a_partition_are_found_too(acme: Owner) -> None:
    """Over all partitions, the default one included."""
    Owner.objects.update(max_running=1)
    today, tomorrow, late = (queued_at(acme, days=days) for days in (0, 1, 90))
    before = plans()
    for run_ids in ([today, tomorrow], [late]):
        assert len(limits(*run_ids)) == 1
    assert limits() == []
    assert plans() == before


@pytest.mark.parametrize("name", ["admit", "record"])
def test_on_one_partition_a_row_is_looked_up_by_its_id_alone(name: str) -> None:
    """The array of all ids is there to leave partitions out: an index sorts it for each row."""
    narrowing = "AND r.id = ANY(%(ids)s) -- of these partitions only"
    assert database.statement(name).count(narrowing) == 1
    assert narrowing not in prepared._statement(name, "jobs_run_20260101")


def test_limits_are_those_of_runs_in_every_state(acme: Owner) -> None:
    """What is not queued may be when it is admitted, a moment after its limits were read."""
    Owner.objects.update(max_running=1)
    run_id = queued_at(acme, days=0)
    Run.objects.filter(id=run_id).update(state=State.HELD)
    assert len(limits(run_id)) == 1


def test_a_partition_that_is_dropped_is_an_error_once(acme: Owner) -> None:
    """Who tries again goes over all partitions: a worker's edge does."""
    moment = now() + timedelta(days=2)
    [run_id] = new_ids(moment, 1)
    name = partition_of(moment)
    assert limits(run_id) == []
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE jobs_run DETACH PARTITION {name}")
        cursor.execute(f"ALTER TABLE {name} RENAME TO gone")
    with pytest.raises(ProgrammingError, match=name), transaction.atomic():
        limits(run_id)
    assert limits(run_id) == []
