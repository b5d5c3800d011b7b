"""One row of the table: a guard, how it is broken, and who must notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ASSERTION: Final = "AssertionError"
"""How pytest ends what it says of an assertion that does not hold."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A guard of one file, replaced by something that does not guard."""

    guard: str
    """What the guard does, in words; the row's name."""

    holds: str
    """The promise that rests on it: its number, or the idea."""

    file: str
    text: str
    """Stands in the file exactly once."""

    instead: str
    tests: tuple[str, ...]
    """All of them fail when the guard is broken."""

    fails_with: str = ASSERTION
    """A part of what each of them then says: an assertion, unless the guard is one against an
    error."""

    is_quick: bool = False
    """Played in every run of the suite, and not only with the whole table."""
