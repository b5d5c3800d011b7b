"""What a batch and a run cost, from three measured points of one worker. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.benchmarks.scale.costs import Child, Costs, Layout, Linear, Simulated
from tests.benchmarks.scale.simulation import simulate

FIT_STEPS: Final = 8
ROUNDS: Final = 3
RUNS: Final = 4_000
FIRST: Final = ((0.05, 0.05), (0.2, 1.0), (2.0, 3.0))
"""Statements and wake-ups of a run before the first simulation, of each point."""
MAIN: Final = "worker, main process"
CHILDREN: Final = "CPU µs, worker, children"


@dataclass(frozen=True, slots=True)
class Point:
    """A measured point: the CPU time of a run (µs) by kind of process, and the runs a second."""

    task_seconds: float
    cost: Mapping[str, float]
    rate: float


def calibrated(
    short: Point,
    middle: Point,
    long: Point,
    layout: Layout,
    *,
    commit_seconds: float,
    background: float,
    crowding: float = 0.0,
) -> Costs:
    """Return costs with which these points, simulated, have the CPU time that was measured.

    The rate of the short one, too: it decides how much of the cores is usable. The rates of the
    others are not used.
    """
    points = given = [short, middle, long]
    found: Sequence[tuple[float, float]] = FIRST
    for _ in range(ROUNDS):
        costs = _costs(points, found)
        costs = replace(
            costs, commit_seconds=commit_seconds, background=background, crowding=crowding
        )
        costs = _fitted(costs, layout, short)
        simulated = [_simulated(costs, layout, one) for one in points]
        found = [(one.batches, one.wakes) for one in simulated]
        points = [
            replace(point, cost={name: value * one.speed for name, value in point.cost.items()})
            for point, one in zip(given, simulated, strict=True)
        ]
    return costs


def _costs(points: Sequence[Point], found: Sequence[tuple[float, float]]) -> Costs:
    """Return the costs; `found` are the statements and the wake-ups of a run of each point."""
    wake = _wake([point.cost[f"CPU µs, {MAIN}"] for point in points], found)

    def line(kind: str, woken: float = 0.0) -> Linear:
        """Return a line in the number of a run's statements, through the first and the last."""
        (least, few, _), _, (most, many, _) = (
            (point.cost[f"CPU µs, {kind}"] - woken * wakes, batches, wakes)
            for point, (batches, wakes) in zip(points, found, strict=True)
        )
        batch = max(0.0, (most - least) / (many - few))
        # Half of a run's own part belongs to each of its two batches.
        return Linear(batch / 1e6, max(0.0, least - batch * few) / 2e6)

    return Costs(
        main=line(MAIN, wake),
        main_wake=wake / 1e6,
        postgres=line("PostgreSQL"),
        redis=line("Redis"),
        child=Child(tuple((point.task_seconds, point.cost[CHILDREN] / 1e6) for point in points)),
    )


def _wake(costs: Sequence[float], found: Sequence[tuple[float, float]]) -> float:
    """Return the cost of a wake-up: what the middle point has above the line of the two others.

    Costs in µs. The cost of a run is a batch for each statement, a part of its own, and a wake-up
    for each time that the process has slept.
    """
    (few, rare), (some, medium), (many, often) = found
    part = (some - few) / (many - few)
    above = costs[1] - costs[0] - part * (costs[2] - costs[0])
    more = medium - rare - part * (often - rare)
    return max(0.0, above / more) if more > 0 else 0.0


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
