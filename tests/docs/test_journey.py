"""docs/understand/journey.md: each crash point has a line that says what continues the run."""

from fleet.crash_points import KNOWN
from tests.docs.pages import code_words, entries, read

PAGE = read("docs/understand/journey.md")


def test_each_crash_point_says_what_brings_a_run_on() -> None:
    """The list holds the crash points of fleet/crash_points.py, in the order of the journey."""
    moments = entries(PAGE, after="## If a process dies there")
    assert [code_words(name)[0] for name, _ in moments] == list(KNOWN)
    assert all(all(text.split(" → ")) and " → " in text for _, text in moments)
