"""tests/compose/alarm.py: the rules of the play differ from the shipped ones in times only."""

from tests.compose.alarm import PROMETHEUS, shortened

RULE = """
expr: max(x_seconds) > 60 and rate(y[5m]) > 60
for: 2m
"""


def test_times_are_a_twentieth() -> None:
    """Windows, `for`, and limits of metrics in seconds; no other number."""
    late = "max(fairshift_statistics_lag_seconds) > 600"
    assert shortened(late) == "max(fairshift_statistics_lag_seconds) > 75", "longer than a minute"
    assert shortened("max(x_seconds) > 1800") == "max(x_seconds) > 30", "the longest limit"
    assert shortened(RULE) == ("\nexpr: max(x_seconds) > 3 and rate(y[15s]) > 60\nfor: 6s\n")


def test_the_rules_have_as_many_lines_and_alerts() -> None:
    """Shortening takes nothing away."""
    shipped = (PROMETHEUS / "rules.yml").read_text()
    rules = shortened(shipped)
    assert rules.count("alert:") == shipped.count("alert:")
    assert "[15m]" not in rules
