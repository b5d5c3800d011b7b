"""rollups: what counting the minutes of a durable drain costs, beside the drain itself."""

from __future__ import annotations

import time
from statistics import median

from tests.benchmarks.members.drain import OWNERS
from tests.benchmarks.members.durable import drained
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import BenchmarkError, World

SLOTS = 2
WITHOUT = "DROP INDEX attempt_recorded"
WITH = """
CREATE INDEX attempt_recorded ON jobs_attempt USING brin (recorded_at)
    WITH (pages_per_range = 64, autosummarize = on)
"""


def measure(world: World) -> list[Row]:
    """Compare drains with and without the index; and count the minutes of a drain."""
    world.commits_are_durable()
    count = world.pick(6_000, 2_000)
    rates: dict[str, list[float]] = {WITHOUT: [], WITH: []}
    parts: list[float] = []
    for _ in world.turns():
        for statement, found in rates.items():
            _run(statement)
            rate, _lag = drained(world, owners=OWNERS, count=count, slots=SLOTS)
            found.append(rate)
            if statement == WITH:
                parts.append(100 * _counting_seconds(count) * rate / count)
    return [
        compared(
            rates[WITH],
            rates[WITHOUT],
            what=f"durable drain, {SLOTS} slots, {OWNERS} owners, with the index of minutes",
            unit="tasks/s",
            against="without it",
            at_least=0.97,
        ),
        Row(
            what="counting the minutes of a drain, as a part of its time",
            unit="%",
            figure=median(parts),
            at_most=3.0,
            of_figure=True,
            samples={"parts": parts},
        ),
    ]


def _counting_seconds(count: int) -> float:
    """Return the seconds in which the rollups of all attempts are written."""
    from jobs.core import sql
    from jobs.system.rollups.rolling import count_minute

    rows = sql.query("SELECT DISTINCT date_trunc('minute', recorded_at) AS at FROM jobs_attempt")
    minutes = [row["at"] for row in rows]
    began = time.monotonic()
    for minute in minutes:
        count_minute(minute, is_final=True)
    took = time.monotonic() - began
    [found] = sql.query(
        "SELECT sum(count) AS count FROM jobs_rollup WHERE minute = ANY(%s)", [minutes]
    )
    if found["count"] != count:
        raise BenchmarkError(f"the rollups have {found['count']} of {count} attempts")
    return took


def _run(statement: str) -> None:
    from jobs.core import sql

    sql.query(statement)
