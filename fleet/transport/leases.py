"""What this process holds of the fair queues, and what it has still to say about it.

One for each process and broker, however many channels come and go: a lost connection does not
take away what runs. Everything said carries the number of the lease, so saying it twice is
harmless, and what could not be said is said with the next take.

A queue that was emptied, or fell back to an older copy, has begun another epoch: it is told what is
held here, and the application is called, to tell it the rest.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from redis import Redis

from fleet.transport import scripts
from fleet.transport.envelope import address, parsed

logger = logging.getLogger(__name__)

BUFFER_US: Final = 100_000
"""A worker holds messages for its slots, and beyond these so much expected run time a slot."""

SAY_WITHIN_SECONDS: Final = 0.05
SAY_AT: Final = 100
HOLD_AT_ONCE: Final = 100

_ADRIFT: Final = "adrift"
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
    is_started: bool = False
    is_finished: bool = False
    is_lost: bool = False
    is_acked: bool = False

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


@dataclass(frozen=True, slots=True)
class Room:
    """What a take may bring: `slots` messages at any cost, and more for `budget` us."""

    slots: int
    budget: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What a take has brought: (tag, message) pairs, in order.

    `sleep_seconds` is None when there may be more: else nothing can be had before so long, or
    before a wake-up. `has_foreign`: a stock client has put messages into the plain list.
    """

    messages: list[tuple[str, bytes]]
    sleep_seconds: float | None
    has_foreign: bool


@dataclass(slots=True)
class _Unsaid:
    """What is to be said of one queue, as arguments of the scripts of these names."""

    finish: list[Any] = field(default_factory=list)
    ack: list[Any] = field(default_factory=list)
    give_back: list[Any] = field(default_factory=list)
    since: float = 0.0
    is_urgent: bool = False

    def calls(self, worker: str) -> list[scripts.Call]:
        return [
            (act, (worker, *arguments))
            for act, arguments in (
                ("finish", self.finish),
                ("ack", self.ack),
                ("give_back", self.give_back),
            )
            if arguments
        ]


class Leases:
    """The leases of one process on one broker. Safe for threads."""

    def __init__(self) -> None:
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._lock = threading.RLock()
        self._held: dict[str, Lease] = {}
        self._loads: dict[Hashable, Load] = defaultdict(Load)
        self._confirmed: dict[str, int] = defaultdict(int)
        self._met: set[tuple[str, Hashable]] = set()
        """Queues and channels that have taken from them: a new channel may mean a new server."""
        self._unsaid: dict[str, _Unsaid] = defaultdict(_Unsaid)
        self._epochs: dict[str, int] = defaultdict(int)
        self._last_lease: dict[str, int] = defaultdict(int)

    def __contains__(self, tag: object) -> bool:
        return tag in self._held

    def load(self, channel: Hashable) -> Load:
        """Return how much a channel holds; what runs on from lost ones takes its slots too."""
        # Not made by being asked for: a channel may have closed.
        own, adrift = self._loads.get(channel, Load()), self._loads.get(_ADRIFT, Load())
        if not adrift.count:
            return own
        return Load(own.held, own.count + adrift.count, own.buffered + adrift.buffered)

    # --- taking ------------------------------------------------------------------------

    def take(
        self, client: Redis, queue: str, room: Room, *, channel: Hashable, lease_us: int, most: int
    ) -> Taken:
        """Say what is unsaid, and take what there is room for."""
        with self._lock:
            if (queue, channel) not in self._met:
                self._meet(client, queue)
                self._met.add((queue, channel))
            how = (lease_us, room.slots, room.budget, most)
            reply = self._ask(client, queue, how)
            if self._meet_epoch(client, queue, *reply[4:6]):
                reply = self._ask(client, queue, how)
            number, sleep_ms, foreign, _diverted, _epoch, _is_told, *messages = reply
            self._confirmed[queue] = int(number)
            return Taken(
                [self._hold(queue, channel, message) for message in messages],
                sleep_ms / 1000 if sleep_ms else None,
                bool(foreign),
            )

    def _ask(self, client: Redis, queue: str, how: tuple[int, int, int, int]) -> list[Any]:
        """Say what is unsaid, and take, in one round trip; return the take's reply."""
        lease_us, slots, budget, most = how
        unsaid = self._unsaid.pop(queue, None) or _Unsaid()
        known = (self._epochs[queue], self._last_lease[queue])
        take = (self.worker, lease_us, self._confirmed[queue], slots, budget, most, *known)
        try:
            *_, reply = scripts.run_all(client, queue, [*unsaid.calls(self.worker), ("take", take)])
        except BaseException:
            self._unsay(queue, unsaid)
            raise
        return list(reply)

    def _meet(self, client: Redis, queue: str) -> None:
        """Say what is held, over a new channel: the server may have taken over from another.

        Before the take, and not in one go with it: a script that the server does not know comes
        last, and would not know of what was taken.
        """
        if queue in self._confirmed:
            self._keep(client, queue)

    def _keep(self, client: Redis, queue: str) -> list[Lease]:
        """Say of which messages this process knows; return their leases."""
        self.say(client, [queue])
        leases = [lease for lease in self._held.values() if lease.queue == queue]
        named = [value for lease in leases for value in (lease.id, lease.number)]
        scripts.run(client, queue, "keep", self.worker, *named)
        self._confirmed[queue] = 0
        return leases

    # --- epochs ------------------------------------------------------------------------

    def _meet_epoch(self, client: Redis, queue: str, epoch: int, is_told: int) -> bool:
        """Say what is held when a queue has begun another epoch than we know.

        Who is to tell it what it has forgotten is called; where there is nobody, it is told that.
        True when it may give now what it did not give before.
        """
        is_other = self._epochs[queue] not in (0, epoch)
        if is_other:
            self._declare(client, queue)
        # After it: if it fails, the next call finds the difference again.
        self._epochs[queue] = epoch
        if not is_told and not _primers:
            scripts.run(client, queue, "prime", epoch, "told")
        elif not is_told:
            for prime in _primers:
                prime()
        return is_other or not (is_told or _primers)

    def _declare(self, client: Redis, queue: str) -> None:
        """Have a queue that has forgotten it know what this process holds."""
        leases = self._keep(client, queue)
        logger.warning("queue %s began anew: we hold %d of its messages", queue, len(leases))
        for start in range(0, len(leases), HOLD_AT_ONCE):
            groups = [lease.group() for lease in leases[start : start + HOLD_AT_ONCE]]
            values = [value for group in groups for value in group]
            scripts.run(client, queue, "hold", self.worker, *values)

    def _hold(self, queue: str, channel: Hashable, message: list[bytes]) -> tuple[str, bytes]:
        message_id, number, expected, is_urgent, raw = message[:5]
        lease = Lease(
            queue=queue,
            id=message_id.decode(),
            number=int(number),
            expected=round(float(expected)) if expected else None,
            is_urgent=bool(is_urgent),
            channel=channel,
            raw=raw,
            at=time.monotonic(),
        )
        self._last_lease[queue] = max(self._last_lease[queue], lease.number)
        tag = f"{lease.id}#{lease.number}"
        self._held[tag] = lease
        load = self._loads[channel]
        load.held += 1
        load.count += 1
        load.buffered += lease.load
        return tag, raw

    # --- saying ------------------------------------------------------------------------

    def start(self, tag: str) -> None:
        """The pool has it: neither a lost connection nor a warm shutdown gives it back."""
        lease = self._held.get(tag)
        if lease is not None:
            lease.is_started = True

    def lose(self, tag: str) -> None:
        """The process that ran it has died."""
        lease = self._held.get(tag)
        if lease is not None:
            lease.is_lost = True

    def lost(self, tag: str) -> Lease | None:
        """Return the lease of a message whose process has died; None for any other."""
        lease = self._held.get(tag)
        return lease if lease is not None and lease.is_lost else None

    def finish(self, tag: str, seconds: float) -> None:
        """The run has ended: its slot, cap and lock are free, and its owner is charged."""
        with self._lock:
            lease = self._held.get(tag)
            if lease is not None and not lease.is_finished:
                self._unload(lease)
                run = max(0, round(seconds * 1_000_000))
                self._say(lease, "finish", run, is_urgent=lease.is_urgent)
                if lease.is_acked:
                    self.ack(tag)

    def ack(self, tag: str) -> None:
        """The message is done with, when the pool is.

        Celery is done with what it terminates before that has ended: until then it is charged,
        and its cap and lock are taken.
        """
        with self._lock:
            running = self._held.get(tag)
            if running is not None and running.is_started and not running.is_finished:
                running.is_acked = True
                return
            lease = self._pop(tag)
            if lease is not None:
                is_urgent = lease.is_urgent and not lease.is_finished
                self._unload(lease)
                self._say(
                    lease, "ack", is_urgent=is_urgent or self._loads[lease.channel].count == 0
                )

    def dropped(self, tag: str) -> Lease | None:
        """Forget a lease, about which the caller says what there is to say; return it."""
        with self._lock:
            lease = self._pop(tag)
            if lease is not None:
                self._unload(lease)
            return lease

    def give_back(self, tag: str, *, delay_seconds: float = 0.0) -> None:
        """Somebody else may have the message, after a delay perhaps."""
        with self._lock:
            lease = self._pop(tag)
            if lease is not None:
                self._unload(lease)
                self._say(lease, "give_back", round(delay_seconds * 1_000_000), is_urgent=True)

    def give_back_unstarted(self, channel: Hashable) -> None:
        """Give back what a channel brought and no pool has begun to run; the rest is adrift."""
        with self._lock:
            brought = [pair for pair in self._held.items() if pair[1].channel == channel]
            for tag, lease in brought:
                if lease.is_started:
                    self._cast_off(lease)
                else:
                    self.give_back(tag)
            # Nothing names this channel any more: connections come and go for as long as we live.
            self._loads.pop(channel, None)
            self._met = {pair for pair in self._met if pair[1] != channel}

    def _cast_off(self, lease: Lease) -> None:
        before, adrift = self._loads[lease.channel], self._loads[_ADRIFT]
        lease.channel = _ADRIFT
        before.held, adrift.held = before.held - 1, adrift.held + 1
        if not lease.is_finished:
            before.count, adrift.count = before.count - 1, adrift.count + 1
            before.buffered -= lease.load
            adrift.buffered += lease.load

    def _pop(self, tag: str) -> Lease | None:
        lease = self._held.pop(tag, None)
        if lease is not None:
            self._loads[lease.channel].held -= 1
        return lease

    def _unload(self, lease: Lease) -> None:
        if not lease.is_finished:
            lease.is_finished = True
            load = self._loads[lease.channel]
            load.count -= 1
            load.buffered -= lease.load

    def _say(self, lease: Lease, act: str, *more: Any, is_urgent: bool) -> None:
        unsaid = self._unsaid[lease.queue]
        unsaid.since = unsaid.since or time.monotonic()
        unsaid.is_urgent = unsaid.is_urgent or is_urgent
        getattr(unsaid, act).extend((lease.id, lease.number, *more))

    def _unsay(self, queue: str, unsaid: _Unsaid) -> None:
        if not unsaid.calls(self.worker):
            return
        later = self._unsaid[queue]
        for act in ("finish", "ack", "give_back"):
            getattr(later, act)[:0] = getattr(unsaid, act)
        later.since = unsaid.since or later.since
        later.is_urgent = later.is_urgent or unsaid.is_urgent

    def due(self) -> list[str]:
        """Return the queues of which something should be said now."""
        now = time.monotonic()
        return [
            queue
            for queue, unsaid in list(self._unsaid.items())
            if unsaid.is_urgent
            or (unsaid.since and now - unsaid.since >= SAY_WITHIN_SECONDS)
            or len(unsaid.finish) + len(unsaid.ack) >= SAY_AT
        ]

    @property
    def has_unsaid(self) -> bool:
        """Whether anything is to be said."""
        return bool(self._unsaid)

    def say(self, client: Redis, queues: Iterable[str] | None = None) -> None:
        """Say what is unsaid of these queues, or of all."""
        with self._lock:
            for queue in list(self._unsaid if queues is None else queues):
                unsaid = self._unsaid.pop(queue, None)
                if unsaid is None:
                    continue
                try:
                    scripts.run_all(client, queue, unsaid.calls(self.worker))
                except BaseException:
                    self._unsay(queue, unsaid)
                    raise

    # --- living ------------------------------------------------------------------------

    def renew(self, client: Redis) -> None:
        """Say that this process lives, and to a queue that has forgotten it what it holds."""
        for queue in list(self._confirmed):
            known = (self._epochs[queue], self._last_lease[queue])
            _count, *epoch = scripts.run(client, queue, "renew", self.worker, *known)
            with self._lock:
                self._meet_epoch(client, queue, *epoch)

    def wind_up(self, client: Redis) -> None:
        """Give back what no pool has; the rest stays here until it has ended."""
        with self._lock:
            for tag in [tag for tag, lease in self._held.items() if not lease.is_started]:
                self.give_back(tag)
            self.say(client)

    def leave(self, client: Redis) -> None:
        """Say what is unsaid, and give back all that is held."""
        with self._lock:
            for tag, lease in list(self._held.items()):
                if lease.is_acked:
                    self.finish(tag, 0)  # terminated, and nobody will tell of its end
            self.say(client)
            for queue in list(self._confirmed):
                while scripts.run(client, queue, "leave", self.worker, 500) == 500:
                    pass
            self._held.clear()
            self._loads.clear()
            self._confirmed.clear()
            self._met.clear()
            self._epochs.clear()
            self._last_lease.clear()


_of_broker: dict[Hashable, Leases] = {}
os.register_at_fork(after_in_child=_of_broker.clear)

_primers: list[Callable[[], None]] = []
os.register_at_fork(after_in_child=_primers.clear)


def when_untold(prime: Callable[[], None]) -> None:
    """Have this called whenever a queue has not been told what owners may have.

    In any thread, and again until it is told: it may not take time.
    """
    _primers[:] = [prime]


def leases_on(broker: Hashable) -> Leases:
    """Return this process's leases on a broker; a forked child has none of its parent's."""
    return _of_broker.setdefault(broker, Leases())
