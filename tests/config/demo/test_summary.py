"""The summary at the end of the demo."""

from dataclasses import replace

from config.demo.summary import headline
from config.demo.verdict import Verdict
from tests.config.demo.test_upgrade_verdict import GOOD

ALL_WELL = Verdict(
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
    upgrade=GOOD,
)


def test_the_verdict_begins_with_one_line() -> None:
    """OK, or the counts of what went wrong; each kind of fault is named."""
    assert headline(ALL_WELL) == "OK: nothing lost, nothing doubled, nothing outside hours"
    faulty = replace(ALL_WELL, verified=62, doubled=1, upgrade=replace(GOOD, outside=3))
    assert headline(faulty) == "NOT OK: 2 lost, 1 doubled, 3 outside hours"
    freed = replace(ALL_WELL, upgrade=replace(GOOD, held_by_freeze=0))
    assert headline(freed) == f"NOT OK: {GOOD.frozen} not held"
