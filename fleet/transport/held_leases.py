"""The leases that a process holds, and how much of a worker's window they take."""

from __future__ import annotations

import math
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
"""In place of a channel: it was lost, and its messages still run."""


@dataclass(slots=True)
class Lease:
    """One leased message; `expected` is its run time in us, None if unknown."""

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
    is_hint: bool = False
    """Known once it is delivered."""
    is_started: bool = False
    is_finished: bool = False
    is_lost: bool = False
    is_acked: bool = False

    @property
    def tag(self) -> str:
        """The delivery tag: a message may be leased again under another number."""
        return f"{self.id}#{self.number}"

    @property
    def load(self) -> int:
        """Its part of the buffer, in us; a slow or unknown run takes a slot's whole part."""
        return BUFFER_US if self.expected is None else min(self.expected, BUFFER_US)

    @property
    def expected_seconds(self) -> float:
        """How long its run is expected to take; infinite if unknown."""
        return math.inf if self.expected is None else self.expected / 1_000_000

    def undo_start(self) -> None:
        """Note that it was taken back from the pool: no end of its run will be reported."""
        self.is_started = False

    def group(self) -> Sequence[Any]:
        """Return the arguments of `hold.lua`."""
        ran = round((time.monotonic() - self.at) * 1_000_000)
        expected = "" if self.expected is None else self.expected
        message = address(parsed(self.raw), now=datetime.now(UTC)).group(self.raw)
        # Under the leased id: a message without one was given a random id.
        return (self.number, "" if self.is_finished else ran, expected, self.id, *message[1:])


@dataclass(slots=True)
class Load:
    """How much a channel holds: `count` have not finished, `buffered` is their run time (us)."""

    count: int = 0
    buffered: int = 0


_EMPTY: Final = Load()


class HeldLeases:
    """Leases by tag, and each channel's load. Not thread-safe; the caller holds the lock."""

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
        """Return a channel's load; runs of lost channels take its slots as well. Read only."""
        # `get` adds no entry: the channel may have closed.
        own, orphaned = self._loads.get(channel, _EMPTY), self._loads.get(_ORPHANED, _EMPTY)
        if not orphaned.count:
            return own
        return Load(own.count + orphaned.count, own.buffered + orphaned.buffered)

    def is_idle(self, channel: Hashable) -> bool:
        """Whether all messages of this channel have finished."""
        return self._loads[channel].count == 0

    def add(self, lease: Lease) -> None:
        self._leases[lease.tag] = lease
        load = self._loads[lease.channel]
        load.count += 1
        load.buffered += lease.load

    def finish(self, lease: Lease) -> None:
        """Free its slot, unless that is done."""
        if not lease.is_finished:
            lease.is_finished = True
            load = self._loads[lease.channel]
            load.count -= 1
            load.buffered -= lease.load

    def pop(self, tag: str) -> Lease | None:
        """Remove a lease and return it; its slot stays taken."""
        return self._leases.pop(tag, None)

    def lose(self, channel: Hashable) -> list[Lease]:
        """Orphan what a lost channel runs; return its other leases, which stay held."""
        brought = [lease for lease in self._leases.values() if lease.channel == channel]
        for lease in brought:
            if lease.is_started:
                self._orphan(lease)
        return [lease for lease in brought if not lease.is_started]

    def forget(self, channel: Hashable) -> None:
        """Drop the load of a closed channel."""
        self._loads.pop(channel, None)

    def clear(self) -> None:
        self._leases.clear()
        self._loads.clear()

    def _orphan(self, lease: Lease) -> None:
        before, orphaned = self._loads[lease.channel], self._loads[_ORPHANED]
        lease.channel = _ORPHANED
        if not lease.is_finished:
            before.count, orphaned.count = before.count - 1, orphaned.count + 1
            before.buffered -= lease.load
            orphaned.buffered += lease.load
