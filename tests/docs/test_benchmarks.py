"""docs/understand/benchmarks.md: its table names the members that there are, in their order."""

from tests.benchmarks.members import MEMBERS
from tests.docs.pages import code_words, read, table


def test_members_are_those_of_the_page() -> None:
    """Each member has a row that says what it measures; no row is left over."""
    rows = table(read("docs/understand/benchmarks.md"), after="## Last figures")
    assert [code_words(row[0]) for row in rows] == [[member] for member in MEMBERS]
    assert all(row[1] for row in rows)
