"""Owners in the fair queues: sets their settings, and reads their state.

`fleet/transport/lua/shared/accounts.lua` applies the settings.
Uses the connection of `Broker`: every call has a deadline and may raise BrokerUnavailable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from redis import Redis

from fleet.broker.broker import Broker
from fleet.broker.snapshot import MessagePosition, OwnerSnapshot, Snapshot, merged
from fleet.keys import queue_key, settings_key
from fleet.router import OWNER_NAME
from fleet.transport import scripts

PAGE: Final = 500
"""Owners in one script call, which keeps Redis busy for some milliseconds."""

REMEMBERED_SECONDS: Final = 60
SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class OwnerSettings:
    """An owner's settings. `rate` is starts a second, `burst` the starts that may come at once.

    Raises ValueError for a name or a number that the queues cannot keep.
    """

    name: str
    weight: float = 1
    max_running: int | None = None
    is_paused: bool = False
    rate: float | None = None
    burst: float = 1

    def __post_init__(self) -> None:
        if not OWNER_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no owner's name")
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"owner {self.name}: weight {self.weight!r} is not above 0")
        if self.max_running is not None and self.max_running < 1:
            raise ValueError(f"owner {self.name}: max_running {self.max_running} is not 1 or more")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise ValueError(f"owner {self.name}: rate {self.rate!r} is not above 0")
        if not 1 <= self.burst < float("inf"):
            raise ValueError(f"owner {self.name}: burst {self.burst!r} is not 1 or more")

    def _arguments(self) -> tuple[Any, ...]:
        limits = (self.max_running or 0, int(self.is_paused), self.rate or 0, self.burst)
        return self.name, self.weight, *limits


@dataclass(frozen=True, slots=True)
class Epoch:
    """The epoch of a queue: whether it knows all owners (told), and has all hints (filled)."""

    number: int
    is_told: bool
    is_filled: bool


class Owners:
    """The owners in these queues."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self.queues = tuple(queues)

    def set(self, settings: Sequence[OwnerSettings], *, timeout: float) -> None:
        """Set the settings of these owners in every queue; they act at once."""
        with self._broker.client(timeout=timeout) as client:
            # First: the mark of `keep` is out of date now. A pause that begins and ends between two
            # sweeps would otherwise last until the mark expires.
            client.delete(*(settings_key(queue) for queue in self.queues))
            self._set(client, settings)

    def keep(self, settings: Sequence[OwnerSettings], *, timeout: float) -> bool:
        """Set the settings of all owners, unless every queue got the same within a minute.

        True if they were sent, also to a broker that was emptied or fell back to an older copy.
        """
        mark = hashlib.sha256(repr(sorted(map(repr, settings))).encode()).hexdigest()
        keys = [settings_key(queue) for queue in self.queues]
        with self._broker.client(timeout=timeout) as client:
            # MGET ignores a key of the wrong type, and SET replaces it.
            if all(client.mget(key) == [mark.encode()] for key in keys):
                return False
            self._set(client, settings)
            # After them: if this is interrupted, the next call sends them again.
            for key in keys:
                client.set(key, mark, ex=REMEMBERED_SECONDS)
        return True

    def epochs(self, *, timeout: float) -> dict[str, Epoch]:
        """Return each queue's epoch; one that was emptied, or is an older copy, is in a new one."""
        with self._broker.client(timeout=timeout) as client:
            found = {queue: scripts.run(client, queue, "epoch") for queue in self.queues}
        return {
            queue: Epoch(number, bool(is_told), bool(is_filled))
            for queue, (number, is_told, is_filled) in found.items()
        }

    def prime(
        self, epochs: Mapping[str, Epoch], what: Literal["told", "filled"], *, timeout: float
    ) -> bool:
        """Mark these queues as told of all owners, or as filled with all hints.

        False if one of them is in another epoch now.
        """
        with self._broker.client(timeout=timeout) as client:
            known = [
                scripts.run(client, queue, "prime", epoch.number, what)
                for queue, epoch in epochs.items()
            ]
        return all(known)

    def snapshot(self, *names: str, timeout: float) -> Snapshot:
        """Return the state of these owners, or of all, summed over the queues."""
        with self._broker.client(timeout=timeout) as client:
            at = _now(client)
            rows = [row for queue in self.queues for row in _rows(client, queue, names)]
        return Snapshot(at / SECOND, merged(_seen(row, at) for row in rows))

    def waiting_names(self, *, most: int, timeout: float) -> list[str]:
        """Return owners that may be chosen or are over their rate, `most` of each in a queue.

        Those that have had least come first, and those whose rest ends first.
        """
        with self._broker.client(timeout=timeout) as client:
            keys = [queue_key(q, name) for name in ("eligible", "resting") for q in self.queues]
            found: list[Any] = [name for key in keys for name in client.zrange(key, 0, most - 1)]
        return list(dict.fromkeys(name.decode() for name in found))

    def find(self, queue: str, message_id: str, *, timeout: float) -> MessagePosition | None:
        """Return a message's position in a fair queue; None if it is unknown.

        `fleet.transport.envelope.address` says what a message's id is.
        """
        with self._broker.client(timeout=timeout) as client:
            state, *facts = scripts.run(client, queue, "find", message_id)
            if not facts:
                return None
            owner, submission = (fact.decode() for fact in facts[:2])
            size = client.zcard(queue_key(queue, "ready", f"{owner}|{submission}"))
            at = _now(client)
        place, ready, running, cap, paused, rests, before, due = map(_number, facts[2:])
        return MessagePosition(
            state=state.decode(),
            owner=owner,
            submission=submission,
            place=None if place is None else int(place) + 1,
            of_submission=int(size),
            of_owner=int(ready or 0),
            running=int(running or 0),
            max_running=int(cap) if cap else None,
            is_paused=bool(paused),
            rest_seconds=_seconds_until(rests, at),
            owners_before=None if before is None else int(before),
            due_seconds=_seconds_until(due, at),
        )

    def counters(self, queue: str, *, timeout: float) -> dict[str, int]:
        """Return the counters of one queue, by name."""
        with self._broker.client(timeout=timeout) as client:
            flat = scripts.run(client, queue, "counters")
        names, numbers = flat[::2], flat[1::2]
        return {name.decode(): int(number) for name, number in zip(names, numbers, strict=True)}

    def _set(self, client: Redis, settings: Sequence[OwnerSettings]) -> None:
        for start in range(0, len(settings), PAGE):
            page = settings[start : start + PAGE]
            flat = [value for one in page for value in one._arguments()]
            for queue in self.queues:
                scripts.run(client, queue, "owner", *flat)


def _rows(client: Redis, queue: str, names: Sequence[str]) -> Iterable[Any]:
    # Once each: a new owner may shift others to the next page.
    return {row[0]: row for row in _paged(client, queue, names)}.values()


def _paged(client: Redis, queue: str, names: Sequence[str]) -> Iterator[Any]:
    if names:
        for start in range(0, len(names), PAGE):
            yield from scripts.run(client, queue, "owners", 0, 0, *names[start : start + PAGE])
        return
    first = 0
    while rows := scripts.run(client, queue, "owners", first, PAGE):
        yield from rows
        first += PAGE


def _seen(row: Sequence[bytes], at: int) -> OwnerSnapshot:
    name, *facts, is_eligible, rests, oldest = row
    weight, cap, paused, rate, ready, running, finished, served, _virtual = map(float, facts)
    published = _number(oldest)
    return OwnerSnapshot(
        name=name.decode(),
        weight=weight,
        max_running=int(cap) or None,
        is_paused=bool(paused),
        rate=rate or None,
        backlog=int(ready),
        running=int(running),
        finished_count=int(finished),
        worker_seconds=served / SECOND,
        is_eligible=bool(is_eligible),
        oldest_wait_seconds=None if published is None else max(0.0, (at - published) / SECOND),
        rest_seconds=_seconds_until(_number(rests), at),
    )


def _now(client: Redis) -> int:
    """Return the broker's time in microseconds."""
    seconds, microseconds = client.time()
    return int(seconds) * SECOND + int(microseconds)


def _number(value: bytes | int) -> float | None:
    return None if value in (b"", "") else float(value)


def _seconds_until(moment: float | None, at: int) -> float | None:
    return None if moment is None else max(0.0, (moment - at) / SECOND)
