"""Old transactions and replication slots: dead rows and WAL stay because of them.

Tables of runs change all the time. While one old snapshot may still see their dead rows, no vacuum
removes these: tables grow, and each statement reads more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from jobs.core import sql

OLD: Final = timedelta(minutes=15)
"""Age of a transaction that is reported."""
TRANSACTIONS: Final = 1_000_000
"""Age in transactions that is reported: of a slot, and where the time is not visible."""
WAL_BYTES: Final = 5 * 2**30
"""WAL kept by a slot that is reported; a server keeps about 1 GiB without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """An old transaction, prepared transaction or slot."""

    name: str
    """Of the application, of the prepared transaction, or of the slot."""
    username: str | None = None
    pid: int | None = None
    seconds: float | None = None
    """Its age; None: a slot's, or not visible to this user of the database."""
    transactions: int = 0
    """Its age in transactions; 0: it pins no rows."""
    bytes: int | None = None
    """The WAL that a slot keeps."""


def pins() -> dict[str, Pin]:
    """Return the oldest that is reported of each kind: transaction, prepared, slot."""
    limits = {
        "seconds": OLD.total_seconds(),
        "transactions": TRANSACTIONS,
        "bytes": WAL_BYTES,
    }
    rows = sql.run("system/pinning", limits)
    return {row.pop("kind"): Pin(**row) for row in rows}
