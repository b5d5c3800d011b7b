"""The devices themselves, and the count of double activations."""

import pytest

from config.demo.devices import (
    ANSWER_LOST,
    FIRST_VERSION,
    MAX_FAILURES_IN_A_ROW,
    PLANNED_FAILURES,
    SLOWEST_SECONDS,
    Request,
    device_names,
    doubled,
    lab_names,
    make_devices,
    report,
)

ACTIVATED = {"outcome": "activated"}
FAILED = {"outcome": "failed"}


def test_names_count_from_one() -> None:
    """Devices are named from 1, with room for four digits."""
    assert device_names(3000)[::2999] == ["fw-0001", "fw-3000"]
    assert lab_names(4) == ["lab-1", "lab-2", "lab-3", "lab-4"]


def test_the_seed_decides_everything() -> None:
    """The same seed gives the same fleet, another seed another one."""
    names = device_names(50)
    assert make_devices(names, seed=7) == make_devices(names, seed=7)
    assert make_devices(names, seed=7) != make_devices(names, seed=8)


def test_a_share_of_the_devices_fails_and_never_three_times_in_a_row() -> None:
    """About 2 % fail at first, each kind among them, at most twice in a row."""
    devices = make_devices(device_names(3000), seed=1).values()
    failing = [device for device in devices if device.failures]
    assert len(failing) == 60
    assert max(len(device.failures) for device in failing) == MAX_FAILURES_IN_A_ROW
    assert {kind for device in failing for kind in device.failures} == set(PLANNED_FAILURES)


def test_response_times_are_spread_around_40_ms() -> None:
    """Half of the devices answer within about 40 ms, none takes longer than 400 ms."""
    times = sorted(d.response_seconds for d in make_devices(device_names(3000), seed=1).values())
    assert 0.036 < times[1500] < 0.044
    assert times[2990] > 0.150
    assert times[-1] <= SLOWEST_SECONDS


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


def test_the_report_is_about_one_version() -> None:
    """Events of other versions count neither as activations nor as doubled."""
    devices = make_devices(["one", "two"], seed=1, failing_share=0)
    for version in (42, 43):
        devices["one"].activated(Request(version, "run", 1))
    devices["one"].failed(Request(43, "run", 2), reason=ANSWER_LOST)
    seen = report(devices, version=43)
    assert (seen["verified"], seen["activations"], seen["failed_attempts"]) == (1, 1, 1)
    assert (seen["doubled"], seen["missing"]) == (0, ["two"])
    assert seen["versions"] == {"one": 43, "two": FIRST_VERSION}
