"""Targets of rows, as they are written and judged."""

import pytest

from tests.benchmarks.rows import Row, compared


@pytest.mark.parametrize(
    ("figure", "is_met"), [(79.0, False), (80.0, True), (125.0, True), (126.0, False)]
)
def test_a_target_may_have_two_limits(figure: float, is_met: bool) -> None:
    """The ratio has to be between them; the table shows both."""
    row = Row(what="", unit="runs/s", figure=figure, baseline=100, at_least=0.8, at_most=1.25)
    assert row.target == "0.8 to 1.25×"
    assert row.is_met is is_met


def test_a_target_may_be_of_the_figure() -> None:
    """Then it has the figure's unit."""
    row = Row(what="", unit="s", figure=3.0, baseline=100, at_most=2.5, of_figure=True)
    assert (row.target, row.is_met) == ("≤ 2.5 s", False)


def test_rounds_that_took_turns_are_compared_in_pairs() -> None:
    """The ratio is the median of the pairs; beside a fixed baseline there is no spread."""
    found = compared([10.0, 40.0, 90.0], [10.0, 10.0, 30.0], what="a", unit="/s", against="b")
    assert (found.figure, found.baseline) == (40.0, 10.0)
    assert (found.ratio, found.spread) == (3.0, (1.0, 4.0))
    fixed = compared([10.0, 40.0], [5.0], what="a", unit="/s", against="b")
    assert (fixed.ratio, fixed.spread) == (5.0, None)
