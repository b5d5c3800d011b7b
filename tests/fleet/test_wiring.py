"""fleet/wiring.py: what changes in Celery in every process with the fair transport."""

import json
from typing import Any

import pytest
from kombu.clocks import LamportClock

from fleet.wiring import use_fair_transport


@pytest.mark.parametrize("other", [int("9" * 4_300), float("inf"), -1, "9", None, []])
def test_a_time_that_is_none_does_not_advance_the_clock(other: Any) -> None:
    """Any client of the broker may send one; the next message has one digit more."""
    use_fair_transport()
    clock = LamportClock(7)
    assert clock.adjust(other) == 8
    assert json.dumps(clock.forward()) == "9"
