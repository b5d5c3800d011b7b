"""One row of the table: a guard, the line that breaks it, and the tests that must notice."""

from dataclasses import dataclass
from typing import Final

ASSERTION: Final = "AssertionError"
"""How pytest ends what it says of an assertion that does not hold."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """The line below a comment `-- guard: …` of a statement or script, replaced."""

    guard: str
    """The comment's words; the row's name."""

    holds: str
    """The promise that rests on it: its number, or the idea."""

    instead: str
    """The line that takes the guarded line's place."""

    tests: tuple[str, ...]
    """All of them fail when the guard is broken."""

    fails_with: str = ASSERTION
    """A part of what each of them then says."""

    is_quick: bool = False
    """Played in every run of the suite, and not only with the whole table."""
