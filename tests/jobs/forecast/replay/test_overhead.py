"""What a start costs is measured in the recording. Pure."""

from jobs.forecast.replay.load import Overhead, OwnerSetting
from jobs.forecast.replay.overhead import Seen, overhead_of

FREE = {"acme": OwnerSetting()}


def test_idle_slots_beside_waiting_runs_are_the_cost_of_a_start() -> None:
    """Two runs one after the other in one slot, each after 100 us; both were queued at once."""
    seen = [Seen("acme", 0, 100, 1100, 1150), Seen("acme", 0, 1200, 2200, 2250)]
    assert overhead_of(seen, owners=FREE, slots=1) == Overhead(start=100, end=50)
