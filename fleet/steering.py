"""What a task raises or returns to decide how its attempt ends. Pure."""

from __future__ import annotations

import math
from typing import Final

LEAST_SNOOZE_SECONDS: Final = 1.0
LONGEST_SNOOZE_SECONDS: Final = 30 * 86_400.0
"""Also the longest delay of a retry."""
MOST_STARTS: Final = 1_000
"""Starts after which a run is not snoozed again: each start adds to its history."""
REASON_CHARACTERS: Final = 500

SNOOZED: Final = "snoozed"
CANCELLED: Final = "cancelled by its task"
DISCARDED: Final = "discarded by its task"


class Steer(Exception):
    """Base of what steers; `raise` it, or return it as the task's result."""


class Snooze(Steer):
    """Run again in some seconds; the attempt is not spent.

    `seconds` is from 1 to 2,592,000 (30 days). ValueError or TypeError for other values.
    """

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"Snooze: seconds is a number, not {type(seconds).__name__}")
        is_allowed = LEAST_SNOOZE_SECONDS <= seconds <= LONGEST_SNOOZE_SECONDS
        if not math.isfinite(seconds) or not is_allowed:
            raise ValueError(
                f"Snooze: seconds is from {LEAST_SNOOZE_SECONDS:g} to {LONGEST_SNOOZE_SECONDS:.0f}"
                f" (30 days), not {seconds!r:.40}"
            )
        super().__init__(seconds)
        self.seconds = float(seconds)

    def __str__(self) -> str:
        return f"snoozed for {self.seconds:g} s"


class _WithReason(Steer):
    def __init__(self, reason: str) -> None:
        name = type(self).__name__
        if not isinstance(reason, str):
            raise TypeError(f"{name}: reason is a text, not {type(reason).__name__}")
        if not reason or len(reason) > REASON_CHARACTERS:
            raise ValueError(
                f"{name}: reason has from 1 to {REASON_CHARACTERS} characters, not {len(reason):,}"
            )
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class Cancel(_WithReason):
    """End the run as cancelled; no attempt follows. `reason` has 1 to 500 characters."""


class Discard(_WithReason):
    """Fail the run for good, whatever attempts are left. `reason` has 1 to 500 characters."""


class SnoozedTooOften(Exception):
    """A task has snoozed its run more often than is allowed: this attempt has failed."""

    def __init__(self) -> None:
        super().__init__(f"the run has started {MOST_STARTS:,} times, and is not snoozed again")
