"""Slots of half a second, and which of them an interval job has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

SLOTS: Final = 120
"""Slots in a minute: as many as there are shards."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
SLOT: Final = MINUTE / SLOTS

# 2**64 divided by the golden ratio: its multiples are spread over 0..2**64 more evenly than
# those of any other number (Knuth, TAOCP 3, 6.4: Fibonacci hashing).
_GOLDEN: Final = 0x9E37_79B9_7F4A_7C15


def slot_of(moment: datetime) -> int:
    """Return the slot in which a moment lies: half-seconds since 1970, rounded down."""
    return (moment - EPOCH) // SLOT


def moment_of(slot: int) -> datetime:
    """Return the first instant of a slot, in UTC."""
    return EPOCH + slot * SLOT


def place(number: int, *, interval_minutes: int) -> tuple[int, int]:
    """Return phase (minutes, below the interval) and shard (0 to 119) of an interval's n-th job.

    However many numbers were given, in one run or with gaps, their jobs are spread evenly
    over the interval: the Weyl sequence of the golden ratio, in integers, so that no number
    is too large for it.
    """
    part = number * _GOLDEN % 2**64
    return divmod(part * interval_minutes * SLOTS >> 64, SLOTS)
