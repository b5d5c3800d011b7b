"""Calibration, with points that a simulation with known costs has made."""

from dataclasses import replace
from functools import cache

import pytest

from tests.benchmarks.scale.calibration import Point, calibrated
from tests.benchmarks.scale.costs import Costs, Layout, Linear, Simulated
from tests.benchmarks.scale.simulation import simulate
from tests.benchmarks.scale.test_simulation import COSTS

pytestmark = pytest.mark.proof  # a part of the benchmarks, and a calibration simulates for seconds

LAYOUT = Layout(1, 4, cores=2)


def _point(costs: Costs, task_seconds: float) -> Point:
    """Return what a measurement of this simulation would give."""
    found = simulate(costs, LAYOUT, task_seconds=task_seconds)

    def of_a_run(line: Linear, *, wake: float = 0.0) -> float:
        own = line.batch * found.batches + 2 * line.run + wake * found.wakes
        return 1e6 * own / found.speed

    cost = {
        "CPU µs, worker, main process": of_a_run(costs.main, wake=costs.main_wake),
        "CPU µs, PostgreSQL": of_a_run(costs.postgres),
        "CPU µs, Redis": of_a_run(costs.redis),
        "CPU µs, worker, children": costs.child.of(task_seconds) * 1e6 / found.speed,
    }
    return Point(task_seconds, cost, found.rate)


@cache
def _calibrated(usable: float) -> tuple[Costs, Costs]:
    true = replace(COSTS, usable=usable, crowding=0.3)
    points = [_point(true, seconds) for seconds in (0.0, 0.005, 0.05)]
    found = calibrated(*points, LAYOUT, commit_seconds=300e-6, background=0.0, crowding=0.3)
    return true, found


@pytest.mark.parametrize("usable", [1.0, 0.8])
def test_the_costs_are_found_again(usable: float) -> None:
    """Of a batch and of a run, and how much of the cores work gets."""
    true, found = _calibrated(usable)
    assert found.usable == pytest.approx(usable, abs=0.08)
    assert found.postgres.batch == pytest.approx(true.postgres.batch, rel=0.1)
    assert found.main.run == pytest.approx(true.main.run, rel=0.1)
    assert found.main_wake == pytest.approx(true.main_wake, rel=0.3)


@pytest.mark.parametrize(("workers", "seconds"), [(2, 0.0), (4, 0.005), (4, 0.05)])
def test_points_that_it_does_not_know_are_predicted(workers: int, seconds: float) -> None:
    """Other numbers of workers, and another length."""
    true, found = _calibrated(0.8)

    def rate(costs: Costs) -> float:
        simulated: Simulated = simulate(costs, Layout(workers, 4, cores=2), task_seconds=seconds)
        return simulated.rate

    assert rate(found) == pytest.approx(rate(true), rel=0.1)
