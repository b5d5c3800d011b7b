"""What a start costs is measured in the recording. Pure."""

from jobs.forecast.replay.load import Overhead, OwnerSetting
from jobs.forecast.replay.overhead import Seen, overhead_of

FREE = {"acme": OwnerSetting()}


def test_idle_slots_beside_waiting_runs_are_the_cost_of_a_start() -> None:
    """Two runs one after the other in one slot, each after 100 us; both were queued at once."""
    seen = [Seen("acme", 0, 100, 1100, 1150), Seen("acme", 0, 1200, 2200, 2250)]
    assert overhead_of(seen, owners=FREE, slots=1) == Overhead(start=100, end=50)


def test_a_slot_for_which_no_run_waits_costs_nothing() -> None:
    """A second slot beside one run is idle for no start."""
    seen = [Seen("acme", 0, 0, 1000), Seen("acme", 5000, 5000, 6000)]
    assert overhead_of(seen, owners=FREE, slots=4) == Overhead(start=0, end=0)


def test_a_run_behind_its_owner_s_cap_waits_for_no_slot() -> None:
    """It does not make a slot seem idle."""
    seen = [Seen("acme", 0, 0, 1000), Seen("acme", 0, 1000, 2000)]
    capped = {"acme": OwnerSetting(cap=1)}
    assert overhead_of(seen, owners=capped, slots=4).start == 0
    assert overhead_of(seen, owners=FREE, slots=4).start == 500
