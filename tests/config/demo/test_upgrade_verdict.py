"""The verdict on an upgrade: good only when exactly the customers who agreed have it."""

from dataclasses import replace

import pytest

from config.demo.verdict import UpgradeVerdict

GOOD = UpgradeVerdict(
    asked=240,
    upgraded=240,
    outside=0,
    doubled=0,
    not_approved=30,
    held_for_approval=30,
    frozen=30,
    held_by_freeze=30,
    openings=6,
    seconds=11.0,
)


def test_what_is_as_agreed_is_good() -> None:
    """All who agreed have it, none outside, the others still held."""
    assert GOOD.is_good


@pytest.mark.parametrize(
    "figures",
    [
        *({"outside": 1}, {"upgraded": 239}, {"upgraded": 241}, {"doubled": 1}),
        *({"held_for_approval": 29}, {"held_by_freeze": 29}),
    ],
)
def test_each_figure_can_spoil_it(figures: dict[str, int]) -> None:
    """One upgrade outside of hours is enough."""
    assert not replace(GOOD, **figures).is_good
