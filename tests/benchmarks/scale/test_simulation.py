"""The simulation, where one thing alone limits it and the rate can be calculated by hand."""

from dataclasses import replace

import pytest

from tests.benchmarks.scale.costs import Child, Costs, Layout, Linear
from tests.benchmarks.scale.simulation import simulate

pytestmark = pytest.mark.proof  # each simulates for a part of a second, or for seconds

COSTS = Costs(
    main=Linear(300e-6, 100e-6),
    postgres=Linear(500e-6, 20e-6),
    redis=Linear(100e-6, 15e-6),
    child=Child(((0.0, 150e-6), (0.005, 250e-6), (0.05, 400e-6))),
    main_wake=50e-6,
    commit_seconds=300e-6,
)
FREE = Costs(*[Linear(0, 0)] * 3, child=Child(((0.0, 0.0),)))


@pytest.mark.parametrize("slots", [1, 4, 32])
def test_long_tasks_are_limited_by_slots(slots: int) -> None:
    """A worker with runs in advance has no idle slot: a run for each task length and slot."""
    found = simulate(FREE, Layout(2, slots, cores=64), task_seconds=0.05)
    assert found.rate == pytest.approx(2 * slots / 0.05, rel=0.02)


def test_short_tasks_are_limited_by_cores() -> None:
    """All of them are busy, and half as many do half as much."""
    four, two = (simulate(COSTS, Layout(8, 4, cores), task_seconds=0.0) for cores in (4, 2))
    busy = two.worker_cores + two.postgres_cores + two.redis_cores
    assert busy == pytest.approx(2, rel=0.05)
    assert two.rate == pytest.approx(four.rate / 2, rel=0.1)


def test_one_worker_is_limited_by_its_main_process() -> None:
    """It is one thread: it uses one core, however many there are."""
    costs = replace(FREE, main=COSTS.main)
    found = simulate(costs, Layout(1, 16, cores=32), task_seconds=0.0)
    assert found.worker_cores == pytest.approx(1, rel=0.03)
    assert found.rate <= 1 / (2 * COSTS.main.run)


def test_redis_is_limited_by_one_core() -> None:
    """It is one thread, and many workers wait for it."""
    costs = replace(FREE, redis=Linear(0, 1e-3))
    layout = Layout(8, 8, cores=8, postgres_cores=8)
    found = simulate(costs, layout, task_seconds=0.01)
    # A run is taken and acknowledged.
    assert found.rate == pytest.approx(1 / 2e-3, rel=0.03)
    assert found.redis_cores == pytest.approx(1, rel=0.03)


def test_postgresql_apart_has_its_own_cores() -> None:
    """Its limit is that of its cores, not of the workers'."""
    costs = replace(FREE, postgres=Linear(0, 1e-3))
    found = simulate(costs, Layout(8, 8, cores=8, postgres_cores=2), task_seconds=0.01)
    assert found.postgres_cores == pytest.approx(2, rel=0.03)
    assert found.rate == pytest.approx(2 / 2e-3, rel=0.03)


def test_what_is_not_usable_slows_each_machine() -> None:
    """Also PostgreSQL on cores of its own: half of two cores is one."""
    costs = replace(FREE, postgres=Linear(0, 1e-3), usable=0.5)
    found = simulate(costs, Layout(8, 8, cores=8, postgres_cores=2), task_seconds=0.01)
    assert found.postgres_cores == pytest.approx(1, rel=0.03)
    assert found.rate == pytest.approx(1 / 2e-3, rel=0.03)


def test_a_main_process_that_sleeps_costs_its_wake_ups() -> None:
    """One with little to do sleeps before nearly each end; one that is always busy never does."""
    layout = Layout(1, 4, cores=8)
    costs = replace(FREE, main=COSTS.main, main_wake=1e-3)
    short, long = (simulate(costs, layout, task_seconds=seconds) for seconds in (0.0, 0.05))
    assert short.wakes < 0.2
    assert 1 < long.wakes < 4
    free = simulate(replace(costs, main_wake=0.0), layout, task_seconds=0.05)
    more = long.worker_cores / long.rate - free.worker_cores / free.rate
    assert more == pytest.approx(1e-3 * long.wakes, rel=0.1)


def test_crowded_cores_do_less_and_are_used_longer() -> None:
    """All are busy: with a part of 0.5, half as many runs end in the same CPU time."""
    layout = Layout(8, 4, cores=2)
    free, slow = (
        simulate(replace(COSTS, crowding=part), layout, task_seconds=0.0) for part in (0.0, 0.5)
    )
    assert slow.speed == pytest.approx(0.5, abs=0.03)
    assert slow.rate == pytest.approx(free.rate / 2, rel=0.1)
    for found in (free, slow):
        busy = found.worker_cores + found.postgres_cores + found.redis_cores
        assert busy == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "cost"), [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0), (2.0, 4.0), (9.0, 5.0)]
)
def test_a_child_costs_more_the_longer_its_task_sleeps(seconds: float, cost: float) -> None:
    """Lines lead from one point to the next, and behind the last it stays."""
    child = Child(((0.0, 1.0), (1.0, 3.0), (3.0, 5.0)))
    assert child.of(seconds) == pytest.approx(cost)


def test_long_tasks_are_in_small_batches() -> None:
    """A worker takes them nearly one by one: a run costs more statements than a short one."""
    layout = Layout(1, 4, cores=2)
    short, long = (simulate(COSTS, layout, task_seconds=seconds) for seconds in (0.0, 0.05))
    assert short.batches < 0.1
    assert 0.5 < long.batches < 2
    assert long.postgres_cores / long.rate > 3 * short.postgres_cores / short.rate


def test_long_tasks_are_in_batches_only_at_hundreds_a_second() -> None:
    """Each free slot is filled at once: with 64 slots a run still has nearly two statements."""
    layouts = [Layout(1, slots, cores=8, postgres_cores=4) for slots in (8, 64, 256)]
    few, many, most = (simulate(COSTS, one, task_seconds=0.2).batches for one in layouts)
    assert few == pytest.approx(2, abs=0.05)
    assert 1.5 < many < few
    assert most < 1.1


def test_the_same_question_has_the_same_answer() -> None:
    """Chance is seeded."""
    layout = Layout(2, 4, cores=2)
    assert simulate(COSTS, layout, task_seconds=0.01) == simulate(COSTS, layout, task_seconds=0.01)
