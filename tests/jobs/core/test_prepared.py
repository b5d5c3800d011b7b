"""jobs/core/prepared.py: a statement about runs is planned once for the partition of their day."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import ProgrammingError, connection, transaction

from jobs import upsert_jobs
from jobs.core import prepared
from jobs.core import sql as database
from jobs.core.ids import new_ids
from jobs.core.prepared import partition_of
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.wiring import SESSION
from tests.jobs.system.test_partitions import stored_at


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
    return prepared.run("runs/lock_limits", run_ids, {"ids": list(run_ids)})  # type: ignore[return-value]


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


def copied(run_id: UUID, count: int) -> None:
    """Store so many more runs like this one, of the same moment."""
    database.query(
        "INSERT INTO jobs_run SELECT copy.* FROM jobs_run r, generate_series(1, %s) AS number, "
        "LATERAL jsonb_populate_record(r, jsonb_build_object("
        "'id', overlay(r.id::text PLACING lpad(to_hex(number), 12, '0') FROM 25))) AS copy "
        "WHERE r.id = %s",
        [count, run_id],
    )


def as_at_the_edge() -> str:
    """Have this transaction's plans be those of a worker's I/O thread; return today's partition."""
    for setting, value in SESSION.items():
        database.query(f"SET LOCAL {setting} = '{value}'")
    return partition_of(now())


def emptied(table: str) -> str:
    """Have nothing left in a partition, nor the room that others' rows took."""
    database.query(f"TRUNCATE {table}")
    return table


def plan_of(sql: str) -> str:
    rows = database.query(sql, None)  # type: ignore[arg-type]
    return "\n".join(row["QUERY PLAN"] for row in rows)


def generic_plan(name: str, table: str) -> str:
    """Return the plan for any batch that PostgreSQL would make now."""
    places: dict[str, int] = {}
    text = re.sub(
        r"%\((\w+)\)s",
        lambda found: f"${places.setdefault(found[1], len(places) + 1)}",
        prepared._statement(name, table),
    )
    return plan_of(f"EXPLAIN (GENERIC_PLAN) {text}")


def is_by_id(plan: str, table: str) -> bool:
    """Whether a plan finds runs by the index of their ids, and there by their ids."""
    looks = re.findall(rf"Scan.* on {table}\b.*\n\s*(\S.*)", plan)
    indexes = set(re.findall(rf"(?:on|using) ({table}_\w+)", plan))
    by_id = r"((Index|Recheck) Cond: \(\S*\bid = (?!ANY)|TID Cond: \(\S+ = ctid\)$)"
    return (
        len(looks) > 1 and all(re.match(by_id, by) for by in looks) and indexes == {f"{table}_pkey"}
    )


def look_at(table: str) -> None:
    """Have PostgreSQL learn how large a partition is."""
    database.query(f"ANALYZE {table}")


@pytest.mark.parametrize("analysed_at", [None, 0, 60])
@pytest.mark.parametrize(
    "name", ["runs/admit", "runs/admit_plain", "runs/record"], ids=["admit", "plain", "record"]
)
def test_on_one_partition_a_row_is_looked_up_by_its_id_alone(
    name: str, analysed_at: int | None, acme: Owner
) -> None:
    """Not by the array of all ids, which an index sorts for each row, nor among all active ones.

    Whatever PostgreSQL knew of the partition before it grew: nothing, or that it was empty, or
    small, and of one owner.
    """
    table = emptied(as_at_the_edge())
    if analysed_at:
        copied(queued_at(acme, days=0), analysed_at)
    if analysed_at is not None:
        look_at(table)
        plans_of_then = generic_plan(name, table)
        copied(queued_at(acme, days=0), 5_000)
        assert not analysed_at or is_by_id(plans_of_then, table), plans_of_then
    plan = generic_plan(name, table)
    assert is_by_id(plan, table), plan


def test_a_partition_that_is_dropped_is_an_error_once(acme: Owner) -> None:
    """Who tries again goes over all partitions: a worker's I/O thread does."""
    moment = now() + timedelta(days=2)
    [run_id] = new_ids(moment, 1)
    name = partition_of(moment)
    assert limits(run_id) == []
    database.query(f"ALTER TABLE jobs_run DETACH PARTITION {name}")
    database.query(f"ALTER TABLE {name} RENAME TO gone")
    with pytest.raises(ProgrammingError, match=name), transaction.atomic():
        limits(run_id)
    assert limits(run_id) == []


def test_plans_are_made_again_while_the_tables_grow(acme: Owner) -> None:
    """A plan for an empty table reads all of it: it is replaced when statements have doubled."""
    database.query("SET LOCAL plan_cache_mode = 'force_generic_plan'")
    emptied("jobs_job CASCADE")
    look_at("jobs_job")
    prepared._counts.clear()

    def read() -> str:
        prepared.run_over_all("definitions/select_one", {"id": 1, "owner_ids": [acme.pk]})
        [statement] = database.query(
            "SELECT name FROM pg_prepared_statements WHERE statement LIKE '-- Read one job%%'"
        )
        return plan_of(f"EXPLAIN EXECUTE {statement['name']}(NULL, NULL)")

    assert "Seq Scan on jobs_job" in read()
    job = {"task": "tests.add", "arguments": {"x": 1, "y": 2}}
    upsert_jobs(acme, [{**job, "key": f"job-{number}"} for number in range(1_000)])
    while prepared._counts[connection.connection] < prepared.FEWEST - 1:
        assert "Seq Scan on jobs_job" in read()
    assert "Seq Scan on jobs_job" not in read()
