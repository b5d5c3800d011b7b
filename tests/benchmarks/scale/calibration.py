"""What a batch and a run cost, from two measured points of one worker. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tests.benchmarks.scale.costs import Costs, Layout, Linear, Simulated
from tests.benchmarks.scale.simulation import simulate

FIT_STEPS: Final = 8
ROUNDS: Final = 3
RUNS: Final = 4_000
FIRST_BATCHES: Final = (0.05, 1.0)
"""Statements for a run, before the first simulation: of short tasks, and of long ones."""


@dataclass(frozen=True, slots=True)
class Point:
    """A measured point: the CPU time of a run (µs) by kind of process, and the runs a second."""

    task_seconds: float
    cost: Mapping[str, float]
    rate: float


def calibrated(
    short: Point, long: Point, layout: Layout, *, commit_seconds: float, background: float
) -> Costs:
    """Return costs with which both points, simulated, have the CPU time that was measured.

    The rate of the short one, too: it decides how much of the cores is usable. The rate of the
    long one is not used.
    """
    batches = FIRST_BATCHES
    for _ in range(ROUNDS):
        costs = _costs(short.cost, long.cost, batches)
        costs = replace(costs, commit_seconds=commit_seconds, background=background)
        costs = _fitted(costs, layout, short)
        found = [_simulated(costs, layout, one) for one in (short, long)]
        batches = found[0].batches, found[1].batches
    return costs


def _costs(
    short: Mapping[str, float], long: Mapping[str, float], batches: tuple[float, float]
) -> Costs:
    """Return the costs; the CPU time of a run is a line in the number of its statements."""

    def line(kind: str) -> Linear:
        least, most = short[f"CPU µs, {kind}"], long[f"CPU µs, {kind}"]
        batch = max(0.0, (most - least) / (batches[1] - batches[0]))
        # Half of a run's own part belongs to each of its two batches.
        return Linear(batch / 1e6, max(0.0, least - batch * batches[0]) / 2e6)

    return Costs(
        main=line("worker, main process"),
        postgres=line("PostgreSQL"),
        redis=line("Redis"),
        child_next=short["CPU µs, worker, children"] / 1e6,
        child_woken=long["CPU µs, worker, children"] / 1e6,
    )


def _fitted(costs: Costs, layout: Layout, point: Point) -> Costs:
    """Return the costs with the part of the cores with which the point has its rate."""
    low, high = 2 * costs.background / layout.cores, 1.0
    for _ in range(FIT_STEPS):
        middle = (low + high) / 2
        tried = replace(costs, usable=middle)
        if _simulated(tried, layout, point).rate > point.rate:
            high = middle
        else:
            low = middle
    return replace(costs, usable=high)


def _simulated(costs: Costs, layout: Layout, point: Point) -> Simulated:
    return simulate(costs, layout, task_seconds=point.task_seconds, runs=RUNS)
