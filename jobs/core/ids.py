"""Ids of runs, which sort by time; those of due runs also prevent duplicates. Pure.

The first 48 bits are milliseconds since 1970 (RFC 9562), and give the day partition.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

_RANDOM_BITS = (1 << 74) - 1


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _assemble(milliseconds: int, *, version: int, tail: int) -> UUID:
    """Return an id: 48 bits time, 4 version, 12 of the tail, 2 variant, 62 of the tail."""
    high = (milliseconds & ((1 << 48) - 1)) << 16 | version << 12 | (tail >> 62) & 0xFFF
    low = 0b10 << 62 | tail & ((1 << 62) - 1)
    return UUID(int=high << 64 | low)


def new_ids(moment: datetime, count: int) -> Iterator[UUID]:
    """Yield `count` UUIDv7 of one moment, in rising order (RFC 9562, 6.2, method 2)."""
    milliseconds = _milliseconds(moment)
    # The top bit is 0, so that increments cannot reach the version bits.
    start = int.from_bytes(os.urandom(10)) & (_RANDOM_BITS >> 1)
    for offset in range(count):
        yield _assemble(milliseconds, version=7, tail=start + offset)


def new_tail() -> str:
    """Return the hex digits of a new UUIDv7 after its time; insert_one.sql adds that."""
    return _assemble(0, version=7, tail=int.from_bytes(os.urandom(10)) & _RANDOM_BITS).hex[12:]


def scheduled_id(job_id: int, due_at: datetime, *, salt: str = "") -> UUID:
    """Return the id of a job's run at a due time: a UUIDv8.

    Two schedulers, or a repeated tick, make the same id, and the primary key refuses the second.
    `salt` distinguishes a backfill from the run that was due.
    """
    return UUID(scheduled_text(job_id, _milliseconds(due_at), salt=salt))


def scheduled_text(job_id: int, due_ms: int, *, salt: str = "") -> str:
    """Return that id as text, from milliseconds since 1970; twice as fast."""
    tail = hashlib.sha256(f"{job_id}:{due_ms}:{salt}".encode()).hexdigest()
    time = f"{due_ms:012x}"
    # Version and variant replace bits of the digest, as in the SQL function `jobs_scheduled_id`.
    variant = "89ab"[int(tail[4], 16) & 3]
    return f"{time[:8]}-{time[8:]}-8{tail[1:4]}-{variant}{tail[5:8]}-{tail[8:20]}"


def first_id_of(moment: datetime) -> UUID:
    """Return the smallest id of a moment: the bound of a partition or of a search by time."""
    return UUID(int=_milliseconds(moment) << 80)


def time_of(run_id: UUID) -> datetime:
    """Return the moment in an id, to the millisecond, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=run_id.int >> 80)
