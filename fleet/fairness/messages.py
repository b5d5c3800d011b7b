"""The values of the reference queue: messages, leases, and states of messages and owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass
class Message:
    """A published message; times are relative, in microseconds."""

    id: str
    owner: str
    submission: str = ""
    priority: int = 0
    delay: int = 0
    deadline: int | None = None
    lock: str = ""
    task: str = ""
    body: bytes = b""

    order: int = 0
    """The least comes first. The queue sets it, and `not_after`."""
    not_after: int = 0
    is_returned: bool = False
    """A worker has given it back."""

    @property
    def line(self) -> tuple[str, str]:
        return self.owner, self.submission


@dataclass
class Lease:
    worker: str
    number: int
    at: int
    expected: int
    is_finished: bool = False


class Place(NamedTuple):
    """A message's position."""

    state: str
    owner: str = ""
    submission: str = ""
    before: int | None = None
    """Messages before it in its submission."""
    owners_before: int | None = None
    due: int | None = None


class OwnerStats(NamedTuple):
    """An owner's state; times in microseconds."""

    ready: int
    running: int
    finished: int
    served: int
    virtual: float
    is_eligible: bool
    rests_until: float | None
