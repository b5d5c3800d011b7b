"""Targets of rows, as they are written and judged."""

import pytest

from tests.benchmarks.rows import Row


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
