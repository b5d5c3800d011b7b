"""What a process holds of the fair queues, and how much of a worker's window that takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from fleet.fairness.queue import BUFFER_SECONDS
from fleet.transport.envelope import address, parsed

BUFFER_US: Final = round(BUFFER_SECONDS * 1_000_000)

_ORPHANED: Final = "orphaned"
"""In place of the channel of what still runs when its channel is lost."""


@dataclass(slots=True)
class Lease:
    """One message that this process holds; `expected` is its run time in us, None when unknown."""

    queue: str
    id: str
    number: int
    expected: int | None
    is_urgent: bool
    channel: Hashable
    raw: bytes
    at: float
    """Our `time.monotonic()` when it came."""
    is_redelivered: bool = False
    """A worker has given it back before."""
    is_started: bool = False
    is_finished: bool = False
    is_lost: bool = False
    is_acked: bool = False

    @property
    def tag(self) -> str:
        """By which its channel knows it: a message may come again under another number."""
        return f"{self.id}#{self.number}"

    @property
    def load(self) -> int:
        """What it takes of the buffer: an unknown or slow one a whole slot's part."""
        return BUFFER_US if self.expected is None else min(self.expected, BUFFER_US)

    def group(self) -> Sequence[Any]:
        """Return it as `hold.lua` takes it."""
        ran = round((time.monotonic() - self.at) * 1_000_000)
        expected = "" if self.expected is None else self.expected
        message = address(parsed(self.raw), now=datetime.now(UTC)).group(self.raw)
        # Under the id by which it is held: one that names none was given a random one.
        return (self.number, "" if self.is_finished else ran, expected, self.id, *message[1:])


@dataclass(slots=True)
class Load:
    """What a channel holds: `count` of them have not finished, worth `buffered` us."""

    held: int = 0
    count: int = 0
    buffered: int = 0


class HeldLeases:
    """Leases by tag, and what each channel has of them. Not thread-safe; the caller holds the
    lock.
    """

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._loads: dict[Hashable, Load] = defaultdict(Load)

    def __contains__(self, tag: object) -> bool:
        return tag in self._leases

    def get(self, tag: str) -> Lease | None:
        return self._leases.get(tag)

    def leases(self, *, queue: str | None = None) -> list[Lease]:
        """Return all leases, or those of a queue, in the order in which they came."""
        return [lease for lease in self._leases.values() if queue in (None, lease.queue)]

    def load(self, channel: Hashable) -> Load:
        """Return how much a channel holds; what runs on from lost ones takes its slots too."""
        # Not made by being asked for: a channel may have closed.
        own, orphaned = self._loads.get(channel, Load()), self._loads.get(_ORPHANED, Load())
        if not orphaned.count:
            return own
        return Load(own.held, own.count + orphaned.count, own.buffered + orphaned.buffered)

    def is_idle(self, channel: Hashable) -> bool:
        """Whether nothing that this channel brought is still to run."""
        return self._loads[channel].count == 0

    def add(self, lease: Lease) -> None:
        self._leases[lease.tag] = lease
        load = self._loads[lease.channel]
        load.held += 1
        load.count += 1
        load.buffered += lease.load

    def finish(self, lease: Lease) -> None:
        """Have it take no slot any more."""
        if not lease.is_finished:
            lease.is_finished = True
            load = self._loads[lease.channel]
            load.count -= 1
            load.buffered -= lease.load

    def pop(self, tag: str) -> Lease | None:
        """Forget a message; return its lease, of which the slot is still taken."""
        lease = self._leases.pop(tag, None)
        if lease is not None:
            self._loads[lease.channel].held -= 1
        return lease

    def lose(self, channel: Hashable) -> list[Lease]:
        """Forget a channel: orphan what runs of it; return the rest, held as before."""
        brought = [lease for lease in self._leases.values() if lease.channel == channel]
        for lease in brought:
            if lease.is_started:
                self._orphan(lease)
        return [lease for lease in brought if not lease.is_started]

    def forget(self, channel: Hashable) -> None:
        """Keep no load of a channel: connections come and go for as long as we live."""
        self._loads.pop(channel, None)

    def clear(self) -> None:
        self._leases.clear()
        self._loads.clear()

    def _orphan(self, lease: Lease) -> None:
        before, orphaned = self._loads[lease.channel], self._loads[_ORPHANED]
        lease.channel = _ORPHANED
        before.held, orphaned.held = before.held - 1, orphaned.held + 1
        if not lease.is_finished:
            before.count, orphaned.count = before.count - 1, orphaned.count + 1
            before.buffered -= lease.load
            orphaned.buffered += lease.load
