"""Waves: how a submission is cut into stages, and when a failing one stops. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import Any, Final

from jobs.core.errors import OptionError
from jobs.core.inputs import LABEL_LIMIT, refuse_name

MOST_WAVES: Final = 20
LONGEST: Final = timedelta(days=366)
APPROVAL: Final = "approval"
MOST_RUNS: Final = 100_000
"""Of a submission."""
_PART: Final = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """The stages of a submission.

    `sizes` are counts of runs, or parts of all runs as "10%", rounded up; the last wave takes what
    is left. `stop_at` is the count of failed runs of a wave, or their part of its ended runs as
    "5%" (`Limit`), above which nothing more starts; None: it never stops by itself. `between` is
    the time between the end of a wave and the release of the next, or "approval" of a person who
    has not submitted it; None: at once. `spread` names a label of targets: waves take one run of
    each of its values first, then a second of each.
    """

    sizes: Sequence[int | str]
    stop_at: int | str | None = None
    between: timedelta | str | None = None
    spread: str = ""

    def __post_init__(self) -> None:
        refuse_sizes(self.sizes)
        if self.stop_at is not None:
            Limit.read(self.stop_at)
        self._refuse_between()
        refuse_name("waves.spread", self.spread, most=LABEL_LIMIT)

    def _refuse_between(self) -> None:
        given = self.between
        if given is None or given == APPROVAL:
            return
        if not isinstance(given, timedelta) or not timedelta(seconds=1) <= given <= LONGEST:
            raise OptionError(
                "waves.between",
                f"is a timedelta of 1 second to {LONGEST.days} days, {APPROVAL!r}, or left out",
            )

    @property
    def needs_approval(self) -> bool:
        return self.between == APPROVAL

    @property
    def pause(self) -> timedelta | None:
        """The time between two waves."""
        return self.between if isinstance(self.between, timedelta) else None


@dataclass(frozen=True, slots=True)
class Limit:
    """How many failures of a wave are too many."""

    count: int | None = None
    part: float | None = None

    @classmethod
    def read(cls, given: Any) -> Limit:
        """Return the limit of a count or of a text such as "5%"; raise OptionError."""
        if _is_count(given) and 0 <= given <= MOST_RUNS:
            return cls(count=given)
        part = _part(given)
        if part is None or part >= 1:
            raise OptionError(
                "waves.stop_at",
                f"is a count of 0 to {MOST_RUNS:,} failed runs, or a part below 100% of the"
                " ended runs of a wave, as '5%'",
            )
        return cls(part=part)

    def allowed(self, *, ended: int, size: int) -> int:
        """Return how many failures do not stop a wave of `size` runs, so many of them ended.

        A part is of the ended runs, and at least of as many as one failure is allowed in, if the
        wave has them: with 5% one failure among the first 19 runs does not stop 300.
        """
        if self.count is not None or not self.part:
            return self.count or 0
        # Rounded first: 0.07 * (1 / 0.07) may be less than 1.
        return math.floor(round(self.part * max(ended, min(size, 1 / self.part)), 6))

    def is_passed(self, *, failed: int, ended: int, size: int) -> bool:
        """Say whether so many failures of a wave stop the rollout."""
        return failed > self.allowed(ended=ended, size=size)

    def least_ended(self, failed: int) -> int:
        """Return the least ended runs of which so many failed ones are no reason to stop."""
        return math.ceil(failed / self.part) if self.part else MOST_RUNS


def refuse_sizes(sizes: Any) -> None:
    """Raise OptionError unless these are sizes of waves."""
    if isinstance(sizes, str | bytes) or not isinstance(sizes, Sequence) or not sizes:
        raise OptionError("waves.sizes", "is a list of counts and parts, as [1, '10%', '100%']")
    if len(sizes) > MOST_WAVES:
        raise OptionError("waves.sizes", f"holds at most {MOST_WAVES}; these are {len(sizes)}")
    for number, size in enumerate(sizes):
        if not (_is_count(size) and size >= 1) and not _part(size):
            raise OptionError(
                f"waves.sizes[{number}]", "is a count of at least 1, or a part as '10%', up to 100%"
            )


def sizes_from(text: str) -> list[int | str]:
    """Return the sizes in a text with commas, as "1, 10%, 100%"."""
    parts = [part.strip() for part in text.split(",")]
    return [int(part) if part.isdecimal() else part for part in parts if part]


def limit_from(text: str) -> int | str | None:
    """Return the limit in a text, as "5" or "5%"; None for an empty one."""
    return int(text) if text.isdecimal() else text or None


def counts_of(sizes: Sequence[int | str], total: int) -> list[int]:
    """Return how many of `total` runs each wave has; waves for which none is left do not appear.

    Raises OptionError if runs are left over.
    """
    found: list[int] = []
    left = total
    for size in sizes:
        # Rounded first: 0.07 * 100 is a little more than 7.
        count = size if isinstance(size, int) else math.ceil(round((_part(size) or 0) * total, 6))
        taken = min(count, left)
        if taken:
            found.append(taken)
        left -= taken
    if left:
        listed = ", ".join(f"{count:,}" for count in found)
        raise OptionError(
            "waves.sizes",
            f"are {listed} runs, so {left:,} of {total:,} are in no wave; end with '100%'",
        )
    return found


def spread(values: Iterable[Any]) -> list[int]:
    """Return the places of these values: the first of each, then the second of each, and so on."""
    places: dict[Any, list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        places[value].append(place)
    return [place for turn in zip_longest(*places.values()) for place in turn if place is not None]


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _part(given: Any) -> float | None:
    """Return the part that a text such as "2.5%" names; None for what is no such text."""
    match = _PART.fullmatch(given) if isinstance(given, str) else None
    part = float(match[1]) / 100 if match else None
    return part if part is not None and part <= 1 else None
