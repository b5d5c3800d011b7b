"""docs/understand/benchmarks.md: its table names the members that there are, in their order."""

from tests.benchmarks.members import MEMBERS
from tests.docs.pages import code_words, entries, read


def test_members_are_those_of_the_page() -> None:
    """Each member has a row that says what it measures; no row is left over."""
    listed = entries(read("docs/understand/benchmarks.md"), after="## Members")
    assert [code_words(name) for name, _ in listed] == [[member] for member in MEMBERS]
