"""The summary at the end of the demo."""

from dataclasses import replace
from io import StringIO

from config.demo.foreseen import Foreseen
from config.demo.screen import Screen
from config.demo.summary import _show_forecasts, _show_upgrade, headline
from config.demo.verdict import Verdict
from tests.config.demo.test_upgrade_verdict import GOOD


def test_what_was_held_is_said_to_be_cancelled() -> None:
    """Its runs are shown as cancelled by the demo itself."""
    stream = StringIO()
    _show_upgrade(GOOD, version=7, screen=Screen(stream))
    assert "held runs are now cancelled" in stream.getvalue()
    stream = StringIO()
    none = replace(GOOD, held_for_approval=0, held_by_freeze=0)
    _show_upgrade(none, version=7, screen=Screen(stream))
    assert "cancelled" not in stream.getvalue()


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


def test_a_forecast_is_shown_with_what_it_took() -> None:
    """And with its span, if run times and slots were measured."""
    stream = StringIO()
    foreseen = Foreseen(after=2.0, told=20.0, earliest=15.0, latest=30.0)
    guessed = replace(foreseen, earliest=None, latest=None)
    _show_forecasts("acme", [foreseen, guessed], 22.0, Screen(stream))
    first, second = stream.getvalue().splitlines()
    assert "20.0 s" in first and "15.0 to 30.0 s" in first and "22.0 s" in first
    assert "no span" in second
