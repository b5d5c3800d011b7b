"""jobs/pages/metrics/samples.py and shares.py: what is written for Prometheus. Pure."""

from dataclasses import replace

import pytest

from fleet import OwnerSnapshot, Snapshot
from jobs.pages.metrics.shares import jain, measure
from tests.fleet.broker.test_snapshot import BUSY


@pytest.mark.parametrize(
    ("parts", "index"),
    [((), 1), ((0, 0), 1), ((1, 1, 1), 1), ((0.5,), 1), ((1, 0, 0, 0), 0.25), ((2, 1), 0.9)],
)
def test_jains_index(parts: tuple[float, ...], index: float) -> None:
    """1 if all are equal or there is none, 1/n if one has all."""
    assert jain(parts) == pytest.approx(index)


def test_only_owners_that_wait_for_a_turn_count_as_unfair() -> None:
    """One that had less because it had less to do is no sign of unfairness."""

    def waits(name: str, seconds: float) -> OwnerSnapshot:
        return replace(BUSY, name=name, running=0, oldest_wait_seconds=seconds)

    seen = Snapshot(0, {one.name: one for one in (waits("a", 90), waits("b", 90), waits("c", 1))})
    found = measure({"a": 0.5, "b": 0.5, "c": 0.0}, seen=seen, owners=["a"])
    [received, index] = found.collect()
    assert {sample.labels["owner"]: sample.value for sample in received.samples} == {
        "a": 0.5,
        "(other)": 0.5,
    }
    assert index.samples[0].value == pytest.approx(1)
