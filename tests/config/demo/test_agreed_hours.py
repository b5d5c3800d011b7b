"""What the demo's customers agreed to, and what their devices report."""

from config.demo.agreed_hours import (
    AGREED,
    FROZEN,
    OPEN_SECONDS,
    PERIOD_SECONDS,
    Customer,
)
from config.demo.firmware import Firmware, make_firmware

NOON = 1_800_000_000.0


def customer(status: str = AGREED) -> Customer:
    return Customer("contoso", ("contoso-fw-01",), status, (NOON, NOON + PERIOD_SECONDS))


def firmware(status: str = AGREED) -> Firmware:
    return make_firmware([customer(status)], seed=1, failing_share=0)


def test_a_window_is_open_from_its_first_moment_to_before_its_end() -> None:
    """Between two it is shut, as it is before the first and after the last."""
    one = customer()
    for opens in one.opens:
        assert one.is_open(opens)
        assert one.is_open(opens + OPEN_SECONDS - 0.001)
        assert not one.is_open(opens + OPEN_SECONDS)
    assert not one.is_open(NOON - 0.001)


def test_a_device_that_is_touched_outside_is_in_the_report() -> None:
    """With the moment, and the customer's agreement at that moment."""
    fleet = firmware()
    device = fleet.devices["contoso-fw-01"]
    fleet.touched(device, at=NOON + 1, what="began")
    fleet.touched(device, at=NOON + OPEN_SECONDS, what="ended")
    facts = {"status": AGREED, "what": "ended", "late": 0.0}
    outside = [{"device": device.name, "at": NOON + OPEN_SECONDS, **facts}]
    assert fleet.report(42)["outside"] == outside
    refused = firmware(FROZEN)
    refused.touched(refused.devices["contoso-fw-01"], at=NOON + 1, what="began")
    assert [event["status"] for event in refused.report(42)["outside"]] == [FROZEN]
