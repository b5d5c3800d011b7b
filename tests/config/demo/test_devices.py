"""The devices themselves, and the count of double activations."""

import pytest

from config.demo.devices import (
    MAX_FAILURES_IN_A_ROW,
    PLANNED_FAILURES,
    device_names,
    doubled,
    make_devices,
)

ACTIVATED = {"outcome": "activated"}
FAILED = {"outcome": "failed"}


def test_a_share_of_the_devices_fails_and_never_three_times_in_a_row() -> None:
    """About 2 % fail at first, each kind among them, at most twice in a row."""
    devices = make_devices(device_names(3000), seed=1).values()
    failing = [device for device in devices if device.failures]
    assert len(failing) == 60
    assert max(len(device.failures) for device in failing) == MAX_FAILURES_IN_A_ROW
    assert {kind for device in failing for kind in device.failures} == set(PLANNED_FAILURES)


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([], 0),
        ([ACTIVATED], 0),
        ([FAILED, ACTIVATED], 0),
        ([ACTIVATED, FAILED, ACTIVATED], 0),
        ([ACTIVATED, ACTIVATED], 1),
        ([FAILED, ACTIVATED, ACTIVATED, ACTIVATED], 2),
        ([ACTIVATED, FAILED, ACTIVATED, ACTIVATED], 1),
    ],
)
def test_doubled_is_an_activation_without_a_failure_since_the_last(
    events: list[dict[str, str]], count: int
) -> None:
    """Only a failed attempt in between makes a second activation right."""
    assert doubled(events) == count
