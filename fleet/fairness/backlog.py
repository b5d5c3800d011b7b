"""The messages that wait in a fair queue, and the owners that may be chosen. Pure.

- **Ageing** needs no later update: the order by "priority plus waiting" is the order by
  `published - priority * AGEING_SECONDS`, which does not change.
- **Owners that may not be chosen cost nothing**: one that is at its cap, paused, over its rate, or
  has only parked messages, is not in `eligible`. The end of that state puts it back.
- **Locks**: while a lock is free, the first message of each owner is ready, so that a paused owner
  blocks no other. The message that is taken holds the lock; the others are parked again when their
  turn comes.

The scripts repeat this in `transport/lua/shared/messages.lua` and `accounts.lua`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Final

from fleet.fairness.accounts import SECOND, Owner
from fleet.fairness.messages import Lease, Message, OwnerStats, Place

AGEING_SECONDS: Final = 60.0
"""One step of priority counts as much as this waiting time."""

MOST_MOVED: Final = 100
"""Per call, at most this many delayed messages become ready, leases are reclaimed, and lock
waiters are woken."""


@dataclass
class Backlog:
    """A queue's messages and owners. Each public method ends with `_settle`."""

    virtual: float = 0
    busy: int = 0
    """Number of the busy period."""
    sequence: int = 0

    messages: dict[str, Message] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    """Messages that were published again while they were known."""
    owners: dict[str, Owner] = field(default_factory=dict)
    eligible: dict[str, float] = field(default_factory=dict)
    """Owners that may be chosen, by a virtual time, which is out of date while they have runs."""
    resting: dict[str, float] = field(default_factory=dict)
    submissions: dict[str, dict[str, float]] = field(default_factory=dict)
    """For each owner, the submissions with ready messages, by virtual time."""
    ready: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    delayed: dict[str, int] = field(default_factory=dict)
    locks: dict[str, str] = field(default_factory=dict)
    """Locks and the messages that hold them."""
    parked: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """Messages behind a lock, by (lock, owner)."""
    leases: dict[str, Lease] = field(default_factory=dict)
    _touched: dict[str, None] = field(default_factory=dict)
    _has_left: bool = False

    def enqueue(self, now: int, messages: Iterable[Message]) -> int:
        """Add the messages whose id is not known; return how many."""
        new = [message for message in messages if self._is_new(now, message)]
        self._settle(now)
        return len(new)

    def set_owner(
        self,
        now: int,
        name: str,
        *,
        weight: float = 1,
        cap: int = 0,
        is_paused: bool = False,
        rate: float = 0,
        burst: float = 1,
    ) -> None:
        """Change an owner's settings; they act on its backlog at once.

        An unknown owner with the defaults gets no account: its first message makes the same one.
        """
        if name not in self.owners and (weight, cap, is_paused, rate) == (1, 0, False, 0):
            return
        self._owner(now, name).change(
            now, weight=weight, cap=cap, is_paused=is_paused, rate=rate, burst=burst
        )
        self._touch(name)
        self._settle(now)

    def withdraw(self, now: int, ids: Iterable[str]) -> int:
        """Remove messages that are not leased; return how many."""
        removed = sum(self._withdraw(mid) for mid in ids)
        self._settle(now)
        return removed

    def purge(self, now: int) -> int:
        """Remove all messages that are not leased; return how many."""
        return self.withdraw(now, list(self.messages))

    def find(self, mid: str) -> Place:
        """Return a message's position and state: ready, parked, delayed, leased or unknown."""
        message = self.messages.get(mid)
        if not message:
            return Place("unknown")
        line = self.ready.get(message.line, {})
        state = "parked"
        for name, ids in (("leased", self.leases), ("delayed", self.delayed), ("ready", line)):
            if mid in ids:
                state = name
        return Place(
            state,
            *message.line,
            by_score(line).index(mid) if mid in line else None,
            by_score(self.eligible).index(message.owner)
            if message.owner in self.eligible
            else None,
            self.delayed.get(mid),
        )

    def owner_stats(self, now: int, names: Iterable[str]) -> dict[str, OwnerStats]:
        """Return the state of owners; unknown ones are omitted."""
        known = [self.owners[name] for name in names if name in self.owners]
        return {
            owner.name: OwnerStats(
                owner.ready,
                owner.running,
                owner.finished,
                owner.served,
                owner.effective(now),
                owner.name in self.eligible,
                self.resting.get(owner.name),
            )
            for owner in known
        }

    # Owners in and out of choice --------------------------------------------------------------

    def _owner(self, now: int, name: str) -> Owner:
        return self.owners.setdefault(name, Owner(name, ran_at=now))

    def _touch(self, name: str) -> None:
        """Note that `_settle` must place the owner."""
        self._touched[name] = None

    def _settle(self, now: int) -> None:
        """Place the touched owners, and end the busy period if no owner is eligible."""
        for name in self._touched:
            self._place(now, self.owners[name])
        self._touched.clear()
        if self._has_left and not self.eligible:
            self.busy += 1
        self._has_left = False

    def _place(self, now: int, owner: Owner) -> None:
        """Make the owner eligible, resting or neither."""
        self.resting.pop(owner.name, None)
        rest = owner.rests_until(now)
        if owner.may_run() and not rest:
            if owner.name not in self.eligible:
                owner.enter(now, virtual=self.virtual, busy=self.busy)
            self.eligible[owner.name] = owner.effective(now)
            return
        self._has_left |= self.eligible.pop(owner.name, None) is not None
        if owner.may_run():
            self.resting[owner.name] = rest

    # Messages in and out of readiness ---------------------------------------------------------

    def _is_new(self, now: int, message: Message) -> bool:
        if message.id in self.messages:
            self.again.add(message.id)
            return False
        self.messages[message.id] = message
        # A message ages from its due time, also if that is in the past.
        self._set_order(now, message, delay=message.delay)
        message.not_after = 0 if message.deadline is None else now + message.deadline
        self._owner(now, message.owner)
        if message.delay > 0:
            self.delayed[message.id] = now + message.delay
        else:
            self._make_ready(message)
        return True

    def _set_order(self, now: int, message: Message, *, delay: int = 0) -> None:
        """Order it behind all messages of its priority."""
        self.sequence = max(now, self.sequence + 1)
        message.order = self.sequence + delay - message.priority * floor(AGEING_SECONDS * SECOND)

    def _make_ready(self, message: Message, *, behind: int = 0) -> None:
        """Make a message ready, or park it if its lock is taken.

        If this makes its submission ready, the submission starts `behind` the owner's others.
        """
        if message.lock in self.locks:
            self._park(message)
            return
        owner = self.owners[message.owner]
        owner.ready += 1
        self.ready.setdefault(message.line, {})[message.id] = message.order
        # A submission starts level with its sisters, as an owner does.
        turn = owner.turn + behind
        self.submissions.setdefault(owner.name, {}).setdefault(message.submission, turn)
        self._touch(owner.name)

    def _take_out(self, message: Message) -> None:
        line = self.ready[message.line]
        del line[message.id]
        self.owners[message.owner].ready -= 1
        if not line:
            del self.ready[message.line]
            del self.submissions[message.owner][message.submission]
        self._touch(message.owner)

    def _remove_ready(self, message: Message) -> None:
        """Remove a ready message; if its lock is free, unpark the next message for it."""
        self._take_out(message)
        if message.lock and message.lock not in self.locks:
            self._let_next(message.lock, message.owner)

    def _withdraw(self, mid: str) -> bool:
        message = self.messages.get(mid)
        if not message or mid in self.leases:
            return False
        if mid in self.delayed:
            del self.delayed[mid]
        elif mid in self.parked.get((message.lock, message.owner), {}):
            self._unpark(message)
        else:
            self._remove_ready(message)
        self._forget(mid)
        return True

    def _forget(self, mid: str) -> None:
        del self.messages[mid]
        self.again.discard(mid)

    def _fall_due(self, now: int) -> None:
        for mid in until(self.delayed, now):
            del self.delayed[mid]
            self._make_ready(self.messages[mid])
        for name in until(self.resting, now):
            self._touch(name)

    # Locks ------------------------------------------------------------------------------------

    def _park(self, message: Message) -> None:
        line = self.parked.setdefault((message.lock, message.owner), {})
        line[message.id] = message.order

    def _unpark(self, message: Message) -> None:
        line = self.parked[message.lock, message.owner]
        del line[message.id]
        if not line:
            del self.parked[message.lock, message.owner]

    def _let_next(self, lock: str, owner: str) -> None:
        line = self.parked.get((lock, owner))
        if line:
            message = self.messages[least(line)]
            self._unpark(message)
            self._make_ready(message)

    def _free(self, lock: str, mid: str) -> None:
        """Free a lock, and make each owner's first message behind it ready."""
        if self.locks.get(lock) == mid:
            del self.locks[lock]
            first = {
                name: min(line.values()) for (key, name), line in self.parked.items() if key == lock
            }
            for name in by_score(first)[:MOST_MOVED]:
                self._let_next(lock, name)


def least(scores: Mapping[str, float]) -> str:
    return min(scores, key=lambda name: (scores[name], name))


def by_score(scores: Mapping[str, float]) -> Sequence[str]:
    return sorted(scores, key=lambda name: (scores[name], name))


def until(times: Mapping[str, float], now: int) -> Sequence[str]:
    return [name for name in by_score(times) if times[name] <= now][:MOST_MOVED]
