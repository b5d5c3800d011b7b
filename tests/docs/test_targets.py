"""CONTRIBUTING.md: its table has a line for each target of the Makefile."""

import re

from tests.docs.pages import code_words, read, table

# The first one is told beside the table, the second is for readers of README.md.
TOLD_ELSEWHERE = {"help", "demo"}


def test_table_names_the_targets() -> None:
    """A newcomer finds every target there, and none that is gone."""
    targets = re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE)
    rows = table(read("CONTRIBUTING.md"), after="## Set up")
    listed = [code_words(row[0])[0] for row in rows]
    assert len(listed) == len(set(listed))
    assert set(listed) == {f"make {name}" for name in set(targets) - TOLD_ELSEWHERE}
