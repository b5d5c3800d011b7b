"""What the demo's customers agreed to."""

from config.demo.agreed_hours import AGREED, OPEN_SECONDS, PERIOD_SECONDS, Customer

NOON = 1_800_000_000.0


def test_a_window_is_open_from_its_first_moment_to_before_its_end() -> None:
    """Between two it is shut, as it is before the first and after the last."""
    one = Customer("contoso", ("contoso-fw-01",), AGREED, (NOON, NOON + PERIOD_SECONDS))
    for opens in one.opens:
        assert one.is_open(opens)
        assert one.is_open(opens + OPEN_SECONDS - 0.001)
        assert not one.is_open(opens + OPEN_SECONDS)
    assert not one.is_open(NOON - 0.001)
