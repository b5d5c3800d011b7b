"""What a run costs, from two readings."""

import pytest

from tests.benchmarks.scale.cost import Reading, cost_of_a_run, without_idle

BEFORE = Reading(at=10, machine=50, cpu={"Redis": 1.0, "beat": 0.0}, counts={"WAL bytes": 1_000})
AFTER = Reading(at=12, machine=53, cpu={"Redis": 2.0, "beat": 0.5}, counts={"WAL bytes": 9_000})


def test_a_run_costs_its_part_of_the_difference() -> None:
    """CPU time in µs; what others used is what is not ours."""
    assert cost_of_a_run(BEFORE, AFTER, runs=4) == {
        "runs/s": 2.0,
        "CPU µs, Redis": 250_000,
        "CPU µs, beat": 125_000,
        "WAL bytes": 2_000,
        "cores of others": 0.75,
    }


def test_a_server_that_was_restarted_gives_no_figure() -> None:
    """Its counts begin at 0: a cost below 0 would look like a gain."""
    with pytest.raises(ValueError, match="fell between the readings"):
        cost_of_a_run(AFTER, BEFORE, runs=4)


def test_what_an_idle_installation_uses_is_no_cost_of_a_run() -> None:
    """At 10 runs a second, each has a tenth of what a second uses; sizes and rates stay."""
    cost = {"runs/s": 10.0, "CPU µs, beat": 1_500.0, "WAL bytes": 40.0, "bytes on disk": 700.0}
    idle = {"runs/s": 1.0, "CPU µs, beat": 5_000.0, "WAL bytes": 500.0}
    assert without_idle(cost, idle) == {
        "runs/s": 10.0,
        "CPU µs, beat": 1_000.0,
        "WAL bytes": 0.0,
        "bytes on disk": 700.0,
    }
