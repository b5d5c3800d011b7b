"""The hours that the demo's customers have agreed to, without Django and Fairshift.

The demo makes calendars from them, and the device server uses them to judge what happened.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

OPEN_SECONDS: Final = 5
SHUT_SECONDS: Final = 3
CUT_OFF_SECONDS: Final = 1
PERIOD_SECONDS: Final = OPEN_SECONDS + SHUT_SECONDS
MOST_OPENINGS: Final = 4_000

AGREED = "agreed"
UNAPPROVED = "unapproved"
FROZEN = "frozen"
# (name, part of the devices, status)
CUSTOMERS: Final = (
    ("contoso", 8, AGREED),
    ("globex", 8, AGREED),
    ("initech", 8, AGREED),
    ("litware", 3, UNAPPROVED),
    ("adatum", 3, FROZEN),
)
REFUSING: Final = "contoso"
"""The first device of this customer refuses its first upgrade."""
PARTS: Final = sum(part for _, part, _ in CUSTOMERS)


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer, its devices, and when its windows open, in seconds since 1970."""

    name: str
    devices: tuple[str, ...]
    status: str
    opens: tuple[float, ...]

    def is_open(self, at: float, /) -> bool:
        """Say whether the customer has agreed to an upgrade at this time."""
        if self.status != AGREED:
            return False
        place = bisect_right(self.opens, at) - 1
        return place >= 0 and at < self.opens[place] + OPEN_SECONDS

    def since_close(self, at: float, /) -> float:
        """Return the seconds since its last window closed; infinity if none has."""
        place = bisect_right(self.opens, at) - 1
        return at - self.opens[place] - OPEN_SECONDS if place >= 0 else math.inf


_FILE: Final = TypeAdapter(list[Customer])
"""Reads and writes the file of customers."""


def make_customers(*, devices: int, now: float, seconds: float) -> list[Customer]:
    """Return customers with about `devices` devices in all, and windows for the next `seconds`.

    Each has its own phase: they are not open at the same time.
    """
    count = min(MOST_OPENINGS, math.ceil(seconds / PERIOD_SECONDS) + 1)
    customers = []
    for number, (name, part, status) in enumerate(CUSTOMERS):
        first = math.ceil(now) + number * PERIOD_SECONDS // len(CUSTOMERS)
        names = (f"{name}-fw-{one:02}" for one in range(1, max(1, devices * part // PARTS) + 1))
        opens = tuple(float(first + turn * PERIOD_SECONDS) for turn in range(count))
        customers.append(Customer(name, tuple(names), status, opens))
    return customers


def write_customers(customers: list[Customer], path: Path) -> None:
    """Write the customers to a file for the device server."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_FILE.dump_json(customers))


def read_customers(path: Path) -> list[Customer]:
    """Return the customers in a file."""
    return _FILE.validate_json(path.read_bytes())
