"""docs/use/drop-in.md: its table names the tests of Celery's suite that may differ, and why."""

from tests.celery_suite.differences import DIFFERENCES
from tests.docs.pages import code_words, read, table


def test_differences_are_those_of_the_page() -> None:
    """`make celery-suite` allows what the page says, and nothing else."""
    rows = table(read("docs/use/drop-in.md"), after="## Tests that differ")
    assert {code_words(test)[0]: reason for test, reason in rows} == DIFFERENCES
