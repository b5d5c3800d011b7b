"""jobs/system/partitions.py: a partition a day is made ahead; none that lacks loses a row."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection, transaction

from fleet import Kind
from jobs.core import sql
from jobs.core.ids import new_ids
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.runs.recording import move
from jobs.runs.storage import NewRun, RunDefaults, store
from jobs.system.partitions import days_left, make_partitions
from tests.few_partitions import KEPT_DAYS, drop_partitions
from tests.jobs.scenes import admitted, at_once, behind, living_worker, recorded

AHEAD = KEPT_DAYS + 3  # days
MIGRATION = Path("jobs/migrations/sql/0003_partitions.sql")


def homes() -> dict[UUID, str]:
    """Return the partition in which each run is stored."""
    rows = sql.query("SELECT id, tableoid::regclass::text AS home FROM jobs_run")
    return {row["id"]: row["home"] for row in rows}


def midnight(*, days: int) -> datetime:
    return now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(
        days
    )


def stored_at(owner: Owner, moment: datetime) -> UUID:
    """Store a run whose id is of that moment; return its id."""
    [run_id] = new_ids(moment, 1)
    shared = RunDefaults(
        owner_id=owner.pk,
        owner="acme",
        task="tests.add",
        queue="jobs",
        priority=5,
        max_attempts=3,
        created_at=now(),
        due_at=moment,
    )
    store([NewRun(id=run_id, payload=b"")], shared)
    return run_id


@pytest.fixture(autouse=True)
def few(db: None) -> None:
    """Scenes of other files may have made partitions of later days, and committed them."""
    drop_partitions(after_days=KEPT_DAYS)


def test_partitions_are_made_30_days_ahead() -> None:
    """By the migration; making them again makes none."""
    drop_partitions(after_days=-2)
    assert days_left() == -1
    with connection.cursor() as cursor:
        cursor.execute(MIGRATION.read_text())
    assert days_left() == 30
    # Those of logs are made by a later migration, as those of attempts are.
    assert {name[: len("jobs_log")] for name in make_partitions()} == {"jobs_log"}
    assert make_partitions() == []


def test_a_run_lies_in_the_partition_of_its_day(acme: Owner) -> None:
    """From midnight to midnight, in UTC."""
    start, end = midnight(days=0), midnight(days=1)
    first, last = stored_at(acme, start), stored_at(acme, end - timedelta(milliseconds=1))
    next_one = stored_at(acme, end)
    today, tomorrow = f"jobs_run_{start:%Y%m%d}", f"jobs_run_{end:%Y%m%d}"
    assert homes() == {first: today, last: today, next_one: tomorrow}


def test_rows_without_a_partition_are_moved_when_it_is_made(acme: Owner) -> None:
    """Runs and attempts alike; those of other days stay."""
    day = midnight(days=AHEAD)
    early, late = stored_at(acme, day), stored_at(acme, day + timedelta(days=90))
    for run_id in (early, late):
        sql.query(
            "INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, ended_at) "
            "VALUES (%s, 1, 1, 'failed', clock_timestamp(), clock_timestamp())",
            [run_id],
        )
    assert set(homes().values()) == {"jobs_run_default"}
    make_partitions(days_ahead=AHEAD)
    assert homes() == {early: f"jobs_run_{day:%Y%m%d}", late: "jobs_run_default"}
    rows = sql.query("SELECT run_id, tableoid::regclass::text AS home FROM jobs_attempt")
    assert {row["run_id"]: row["home"] for row in rows} == {
        early: f"jobs_attempt_{day:%Y%m%d}",
        late: "jobs_attempt_default",
    }


def test_a_new_partition_keeps_the_table_s_rules(acme: Owner) -> None:
    """Its key, its defaults and its checks."""
    make_partitions(days_ahead=AHEAD)
    run_id = stored_at(acme, midnight(days=AHEAD))
    name = homes()[run_id]
    indexes = "SELECT count(*) FROM pg_indexes WHERE tablename = %s"
    assert sql.query(indexes, [name]) == sql.query(indexes, ["jobs_run_default"])
    assert Run.objects.get(id=run_id).token == 0


@pytest.fixture
def removed(committed: None) -> Iterator[None]:
    """Partitions that a scene commits are removed after it."""
    yield
    drop_partitions(after_days=KEPT_DAYS)


def test_two_at_once_make_each_partition_once(removed: None) -> None:
    """Two beats, or a deploy beside the hourly task: neither fails."""
    missing = AHEAD - days_left()
    outcomes = at_once(*[lambda: make_partitions(days_ahead=AHEAD)] * 3)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    made = [name for outcome in outcomes for name in outcome]  # type: ignore[union-attr]
    assert len(made) == len(set(made)) == 3 * missing > 0


def test_a_move_to_its_partition_loses_no_outcome(acme: Owner, removed: None) -> None:
    """An outcome that comes meanwhile waits, and finds the row in its new home."""
    run_id = stored_at(acme, midnight(days=AHEAD))
    with transaction.atomic():
        move([run_id], to=State.QUEUED)
    at = admitted(living_worker(), Run.objects.get(id=run_id))
    with behind(lambda: recorded(at, Kind.SUCCEEDED)) as (begin, outcomes):
        make_partitions(days_ahead=AHEAD)
        begin()
    assert outcomes == ["succeeded"]
    assert homes() == {run_id: f"jobs_run_{midnight(days=AHEAD):%Y%m%d}"}
