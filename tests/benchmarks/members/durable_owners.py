"""durable_owners: whether many owners slow durable runs down."""

from __future__ import annotations

from tests.benchmarks.members.durable import drained_of, submitted
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import World

FEW = 10
SLOTS = 2

_SUBMISSIONS = """
WITH given AS (SELECT id, slug, row_number() OVER (ORDER BY id) AS place FROM jobs_owner
               WHERE slug LIKE 'many-%%' ORDER BY id LIMIT %(owners)s),
made AS (INSERT INTO jobs_submission (owner_id, label, task, queue, run_count)
         SELECT g.id, s.label, s.task, s.queue, s.run_count / %(owners)s
         FROM given AS g, jobs_submission AS s WHERE s.id = %(submission)s
         RETURNING id, owner_id),
placed AS (SELECT m.id, m.owner_id, g.place FROM made AS m JOIN given AS g ON g.id = m.owner_id),
runs AS (SELECT id, 1 + row_number() OVER (ORDER BY id) %% %(owners)s AS place
         FROM jobs_run WHERE submission_id = %(submission)s),
moved AS (UPDATE jobs_run AS r SET owner_id = p.owner_id, submission_id = p.id
          FROM runs AS n JOIN placed AS p USING (place) WHERE r.id = n.id)
SELECT id FROM made
"""


def measure(world: World) -> list[Row]:
    """Compare the drain of runs of 10,000 owners with that of 10, in turn."""
    world.commits_are_durable()
    many = world.pick(10_000, 500)
    count = world.pick(10_000, 2_000)
    rates: dict[int, list[float]] = {FEW: [], many: []}
    for _ in world.turns():
        for owners, found in rates.items():
            found.append(_drained(world, owners=owners, count=count))
    return [
        compared(
            rates[many],
            rates[FEW],
            what=f"{SLOTS} slots, {many:,} owners",
            unit="tasks/s",
            against=f"{FEW} owners",
            at_least=0.9,
        )
    ]


def _drained(world: World, *, owners: int, count: int) -> float:
    """Return the tasks/s of runs with a submission of each owner.

    One owner submits all of them, since 10,000 calls would take half a minute; SQL gives them to
    the others. The hints are published from the rows, as after a flush of Redis.
    """
    from jobs.core import sql
    from jobs.models import Owner
    from jobs.system.sweep import publish_after_flush

    world.begin()
    Owner.objects.bulk_create(
        [Owner(slug=f"many-{number:05}") for number in range(owners)], ignore_conflicts=True
    )
    [submission] = submitted(["all"], count=count)
    rows = sql.query(_SUBMISSIONS, {"owners": owners, "submission": submission})
    sql.query("ANALYZE jobs_run, jobs_submission")
    world.redis.flushdb()
    publish_after_flush()
    return drained_of(world, [row["id"] for row in rows], count=count, slots=SLOTS)[0]
