"""docs/understand/guarantees.md: each promise names tests that are there."""

import re

from tests.docs.pages import PROJECT, code_words, entries, read, table

PAGE = "docs/understand/guarantees.md"


def test_tests_are_there() -> None:
    """Every path that a promise names is a test, or a folder of tests."""
    rows = table(read(PAGE), after="# What is promised, and how it is proven")
    paths = [word for row in rows for word in code_words(row[2]) if not word.startswith("make ")]
    assert [word for word in paths if not list((PROJECT / "tests").glob(f"{word}*"))] == []


def test_the_last_plays_are_of_promises() -> None:
    """Each row of figures belongs to a promise, or to a play that the page of promises names."""
    promised = read(PAGE)
    for play, _ in entries(read("docs/understand/plays.md"), after="# The last plays"):
        numbers = re.findall(r"G\d+", play) or code_words(play) or [play.partition("s (")[0]]
        assert all(number in promised for number in numbers), play
