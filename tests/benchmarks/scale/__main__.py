"""Simulate workers on other machines: python -m tests.benchmarks.scale --workers 8 --slots 32.

It uses what a run cost in the last full measurement (measured.json), or in a JSON file of your own
`make bench WHAT=cost`. docs/operate/scale.md says what it leaves out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from jobs.management.arguments import number, whole
from tests.benchmarks.scale.costs import Layout
from tests.benchmarks.scale.measured import FILE, costs_of, measured
from tests.benchmarks.scale.simulation import simulate
from tests.benchmarks.scale.tables import DAY_SECONDS


def main(arguments: Sequence[str] | None = None) -> str:
    """Return what is printed."""
    given = _parser().parse_args(arguments)
    found = measured(given.json)
    layout = Layout(given.workers, given.slots, given.cores, given.postgres_cores)
    simulated = simulate(
        costs_of(found.medians, cores=found.cores), layout, task_seconds=given.task_ms / 1000
    )
    a_day = simulated.rate * DAY_SECONDS / 1e6
    return (
        f"{simulated.rate:,.0f} runs/s, {a_day:,.1f} million a day\n"
        f"statements of PostgreSQL for a run: {simulated.batches:.2f}\n"
        f"cores in use: workers {simulated.worker_cores:.2f}, PostgreSQL"
        f" {simulated.postgres_cores:.2f}, Redis {simulated.redis_cores:.2f} of 1"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale", description=__doc__)
    parser.add_argument("--workers", type=whole(1, 10_000), default=1, help="worker processes")
    parser.add_argument("--slots", type=whole(1, 10_000), default=4, help="of each worker")
    parser.add_argument(
        "--task-ms", type=number(0, 3_600_000), default=100.0, help="how long a task waits"
    )
    parser.add_argument(
        "--cores",
        type=number(1, 1_000),
        default=2.0,
        help="of the machine for all; with --postgres-cores, of each worker",
    )
    parser.add_argument(
        "--postgres-cores",
        type=number(0, 1_000),
        default=0.0,
        help="PostgreSQL and Redis have own machines",
    )
    parser.add_argument("--json", type=Path, default=FILE, help="a file of make bench WHAT=cost")
    return parser


if __name__ == "__main__":
    print(main())
