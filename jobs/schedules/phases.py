"""Slots of half a second, and which of them an interval job has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

SLOTS: Final = 120
"""Slots in a minute; shards have the same numbers."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
SLOT: Final = MINUTE / SLOTS

GOLDEN: Final = 0x9E37_79B9_7F4A_7C15
"""2**64 divided by the golden ratio: its multiples spread most evenly over 0..2**64 (Knuth,
TAOCP 3, 6.4: Fibonacci hashing)."""


def slot_of(moment: datetime) -> int:
    """Return the slot in which a moment lies: half-seconds since 1970, rounded down."""
    return (moment - EPOCH) // SLOT


def moment_of(slot: int) -> datetime:
    """Return the first instant of a slot, in UTC."""
    return EPOCH + slot * SLOT


def place(number: int, *, interval_minutes: int) -> tuple[int, int]:
    """Return phase (minutes, below the interval) and shard (0 to 119) of an interval's n-th job.

    Jobs are spread evenly over the interval, however many numbers were given and with any gaps:
    the Weyl sequence of the golden ratio, in integers, for numbers of any size.
    """
    part = number * GOLDEN % 2**64
    return divmod(part * interval_minutes * SLOTS >> 64, SLOTS)


def place_at(moment: datetime, *, interval_minutes: int) -> tuple[int, int]:
    """Return the phase and shard with which an interval job is due at a moment's half-second."""
    return divmod(slot_of(moment) % (interval_minutes * SLOTS), SLOTS)
