"""The demo's verdict, and its first line: good only when all is as it was asked and agreed."""

from dataclasses import replace
from typing import Any

import pytest

from config.demo.summary import headline
from config.demo.verdict import UpgradeVerdict, Verdict

UPGRADE = UpgradeVerdict(
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
GOOD = Verdict(
    version=42,
    devices=60,
    lab_devices=4,
    verified=64,
    doubled=0,
    failed_attempts=3,
    retries=3,
    large_seconds=9.0,
    large_forecasts=(),
    small_seconds=1.0,
    small_ideal_seconds=0.9,
    call_seconds=0.2,
    runs_recorded=64,
    checks=10,
    checks_doubled=0,
    checks_spread=0.1,
    upgrade=UPGRADE,
)


def test_what_is_as_agreed_is_good() -> None:
    """All who agreed have it, none outside, the others still held."""
    assert GOOD.is_good and UPGRADE.is_good
    assert headline(GOOD) == "OK: nothing lost, nothing doubled, nothing outside hours"


@pytest.mark.parametrize(
    ("figures", "of_upgrade", "line"),
    [
        ({"verified": 62, "doubled": 1}, {"outside": 3}, "2 lost, 1 doubled, 3 outside hours"),
        ({}, {"outside": 1}, "1 outside hours"),
        ({}, {"upgraded": 239}, "1 lost"),
        ({}, {"upgraded": 241}, "1 upgraded without agreement"),
        ({}, {"doubled": 1}, "1 doubled"),
        ({}, {"held_for_approval": 29}, "1 not held"),
        ({}, {"held_by_freeze": 0}, "30 not held"),
    ],
)
def test_each_figure_can_spoil_it(
    figures: dict[str, Any], of_upgrade: dict[str, Any], line: str
) -> None:
    """One upgrade outside of hours is enough; the first line names and counts each fault."""
    verdict = replace(GOOD, **figures, upgrade=replace(UPGRADE, **of_upgrade))
    assert not verdict.is_good
    said = headline(verdict)
    assert said.startswith("NOT OK: ") and line in said
