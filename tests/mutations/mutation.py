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

    tests: tuple[str, ...]
    """All of them fail when the guard is broken."""

    instead: str
    """The line that takes the guarded line's place; without one it is removed."""

    fails_with: str
    """A part of what each of the tests then says."""

    is_quick: bool
    """Played in every `make proof`, and not only with the whole table."""


def broken(
    guard: str,
    holds: str,
    *tests: str,
    instead: str = "",
    fails_with: str = ASSERTION,
    is_quick: bool = False,
) -> Mutation:
    """Return a row of the table."""
    return Mutation(guard, holds, tests, instead, fails_with, is_quick)
