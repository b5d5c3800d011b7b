"""tests/celery_suite/results.py: which tests differ, and which of them may."""

from pathlib import Path

import pytest

from tests.celery_suite.results import Comparison, Result, compare, read_results

JUNIT = """<testsuites><testsuite>
<testcase classname="t.integration.test_tasks" name="test_alone"/>
<testcase classname="t.integration.test_canvas.test_chain" name="test_one[a.b]">
  <failure message="E: late&#10;and more"/></testcase>
<testcase classname="t.integration.test_canvas.test_chain" name="test_one[a.b]">
  <error message="in its clean-up"/></testcase>
<testcase classname="t.integration.test_canvas.test_chain" name="test_two">
  <skipped type="pytest.xfail" message="known"/></testcase>
</testsuite></testsuites>"""
PASSED, FAILED = Result("passed"), Result("failed", "late")


def test_results_are_read_by_node_id(tmp_path: Path) -> None:
    """As pytest takes them on its command line, and with the first line of an error."""
    (tmp_path / "junit.xml").write_text(JUNIT)
    chain = "t/integration/test_canvas.py::test_chain"
    assert read_results(tmp_path / "junit.xml") == {
        "t/integration/test_tasks.py::test_alone": PASSED,
        f"{chain}::test_one[a.b]": Result("error", "in its clean-up"),
        f"{chain}::test_two": Result("xfailed", "known"),
    }


def compared(stock: Result, fair: Result, alone: Result | None = None) -> Comparison:
    """Compare one test, which may have run once more alone, with stock's result as before."""
    again = (
        {"stock": {"one": stock}, "fair": {"one": alone}} if alone else {"stock": {}, "fair": {}}
    )
    return compare(
        {"stock": {"one": stock}, "fair": {"one": fair}}, alone=again, named={"named": "why"}
    )


@pytest.mark.parametrize(
    ("comparison", "is_ok", "says"),
    [
        (compared(PASSED, PASSED), True, "0 differ"),
        (compared(PASSED, FAILED), False, "| one | passed | failed | late | none |"),
        (compared(PASSED, FAILED, PASSED), True, "Differed in the suite, not when run alone"),
        (compared(FAILED, FAILED), True, "Fail on stock, too"),
    ],
    ids=["equal", "different", "unstable", "bad on both"],
)
def test_a_difference_without_a_reason_fails(
    comparison: Comparison, is_ok: bool, says: str
) -> None:
    """One that passes alone, and one that fails on both sides, are only reported."""
    assert comparison.ok is is_ok
    assert says in comparison.report()
