"""docs/understand/journey.md: each crash point has a row that says what continues the run."""

from fleet.crash_points import KNOWN
from tests.docs.pages import code_words, read, table

PAGE = read("docs/understand/journey.md")


def test_each_crash_point_says_what_brings_a_run_on() -> None:
    """The table holds the crash points of fleet/crash_points.py, in the order of the journey."""
    rows = table(PAGE, after="## If a process dies there")
    assert [code_words(row[0])[0] for row in rows] == list(KNOWN)
    assert all(row[1] and row[2] for row in rows)
