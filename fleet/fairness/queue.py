"""The fair queue in plain Python: what the Lua scripts must do, and the page on which to read it.

Two levels share a queue's workers: owners by weight, and inside an owner its submissions alike.
Inside a submission messages go by priority and age.

- **Start-time fair queueing** (Goyal, Vin, Cheng: SIGCOMM 1996), paid in worker seconds. The owner
  with the least virtual time is next, and pays what the run is expected to take, over its weight.
  The end of the run puts the real time in the place of the expected one.
- **Long runs pay while they run**: what is in flight counts as expected, or as long as it has run
  when that is more; two sums an owner (`accounts.Owner.in_flight`).
- **The queue's virtual time** is that of the owner that was chosen last. It may go back: who was
  charged too much is paid back, and a newcomer comes in level with them instead of behind all
  of it.
- **Idling earns no credit**: who comes back is level with the queue. When nobody may be chosen any
  more, a busy period has ended, and debts end with it.

Time is passed in, whole microseconds. Adopting foreign messages, quarantine, waking sleeping
workers, and epochs (a queue that was emptied gives nothing out until it knows again what it had
forgotten) are the transport's own and are not told here. This is a reference: it may be slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Final, NamedTuple

from fleet.fairness.accounts import SECOND, Owner
from fleet.fairness.backlog import MOST_MOVED, Backlog, by_score, least
from fleet.fairness.messages import Lease, Message

UNKNOWN_SECONDS: Final = 0.1
"""What a run is charged at first when no run of the queue has ended yet."""

BUFFER_SECONDS: Final = 0.1
"""A worker holds messages for its slots, and beyond these so much expected run time a slot.

What is held beyond the slots begins so much later: it would be charged for its wait, else, and
whoever comes new would enter behind runs that nobody has had.
"""

REJECTED_SECONDS: Final = 0.001
"""What an owner pays for a message that was rejected without a run.

And its submission comes so much after its sisters: neither is chosen first for ever.
"""

MOST_LOOKS: Final = 64
"""Out-of-date owners that are looked at to choose one; then the one at hand is chosen."""


class Given(NamedTuple):
    """A message as a worker gets it."""

    id: str
    lease: int
    expected: int | None
    is_urgent: bool
    """Somebody may wait for its end: tell it at once."""
    body: bytes
    is_redelivered: bool = False
    """A worker has given it back before."""


class Taken(NamedTuple):
    number: int
    """To be confirmed in the next take: its reply may be lost."""
    is_empty: bool
    """Nothing is left that may be chosen now."""
    diverted: list[str]
    """Were past their deadline, and are removed."""
    messages: list[Given]


@dataclass
class FairQueue(Backlog):
    """The whole queue: beside what waits, who is next, and what workers hold."""

    lease_number: int = 0
    average: float = 0
    """The queue's expected run time; 0 until one is known."""
    expected: dict[str, float] = field(default_factory=dict)
    """Tasks and their expected run times."""
    workers: dict[str, int] = field(default_factory=dict)
    """When they were last heard of."""
    takes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each worker the number of its last take, and that of the first lease in it."""

    def take(
        self,
        now: int,
        worker: str,
        *,
        lease: int,
        confirmed: int,
        slots: int,
        budget: int,
        most: int,
    ) -> Taken:
        """Lease the next messages to a worker, fairly.

        It gets `slots` messages whatever they cost, and beyond these, up to `most`, only such
        whose expected run times are known and add up to no more than `budget`.
        """
        self.workers[worker] = now
        self._return_unconfirmed(now, worker, confirmed)
        self._return_from_dead(now, lease)
        self._fall_due(now)
        self._settle(now)
        number, _ = self.takes.get(worker, (0, 0))
        first_lease, spent, turns = self.lease_number + 1, 0, 4 * most + 64
        taken: list[Given] = []
        diverted: list[str] = []
        while len(taken) < most and turns > 0 and (owner := self._foremost(now)):
            turns -= 1
            message = self._next_of(owner)
            expected = self._expected_run(message.task)
            if message.not_after and message.not_after <= now:
                self._remove_ready(message)
                self._forget(message.id)
                diverted.append(message.id)
            elif message.lock in self.locks:
                self._take_out(message)
                self._park(message)
            else:
                if len(taken) >= slots:
                    if expected is None or spent + expected > budget:
                        break
                    spent += expected
                begins_at = now if len(taken) < slots else now + round(BUFFER_SECONDS * SECOND)
                taken.append(
                    self._lease(now, worker, owner, message, expected, begins_at=begins_at)
                )
            self._place(now, owner)
        if taken:
            number += 1
        self.takes[worker] = number, first_lease
        is_empty = len(taken) < most and turns > 0 and not self.eligible
        self._settle(now)
        return Taken(number, is_empty, diverted, taken)

    def finish(self, now: int, worker: str, runs: Iterable[tuple[str, int, int]]) -> int:
        """Charge ended runs (id, lease, run time), free caps and locks; return how many."""
        matched = 0
        for mid, number, run in runs:
            lease = self._lease_of(worker, mid, number)
            if lease and not lease.is_finished:
                self._end(now, mid, lease, run=run)
                self._learn(self.messages[mid], run)
                matched += 1
        self._settle(now)
        return matched

    def ack(self, now: int, worker: str, leases: Iterable[tuple[str, int]]) -> int:
        """Remove messages that are done with. One that never ran costs nothing.

        And when that one was published again meanwhile, it is ready again: who published it
        then may count on it.
        """
        matched = 0
        for mid, number in leases:
            lease = self._lease_of(worker, mid, number)
            if lease:
                if not lease.is_finished:
                    self.owners[self.messages[mid].owner].unstart(now)
                if mid in self.again and not lease.is_finished:
                    self._put_back(now, mid, lease)
                else:
                    self._end(now, mid, lease)
                    del self.leases[mid]
                    self._forget(mid)
                matched += 1
        self._settle(now)
        return matched

    def done(self, now: int, worker: str, runs: Iterable[tuple[str, int, int]]) -> int:
        """Charge ended runs (id, lease, run time), and remove their messages; return how many."""
        runs = list(runs)
        self.finish(now, worker, runs)
        return self.ack(now, worker, [(mid, number) for mid, number, _run in runs])

    def give_back(self, now: int, worker: str, leases: Iterable[tuple[str, int, int, bool]]) -> int:
        """Return messages that the worker will not run: mid, lease, delay, is it rejected.

        They go to their old places, a rejected one behind its line.
        """
        matched = 0
        for mid, number, delay, is_rejected in leases:
            lease = self._lease_of(worker, mid, number)
            if lease:
                self._put_back(now, mid, lease, delay=delay, is_rejected=is_rejected)
                matched += 1
        self._settle(now)
        return matched

    def renew(self, now: int, worker: str) -> int:
        """Hear that a worker lives; return how many messages it holds."""
        self.workers[worker] = now
        return len(self._held(worker))

    def keep(self, now: int, worker: str, leases: Iterable[tuple[str, int]]) -> int:
        """Return what a worker holds and does not name: mid and lease; how many.

        What it names stays its own, whatever the last take was: its next one is its first.
        """
        named = {mid for mid, number in leases if self._lease_of(worker, mid, number)}
        lost = [mid for mid in self._held(worker) if mid not in named]
        for mid in lost:
            self._put_back(now, mid, self.leases[mid])
        self.takes.pop(worker, None)
        self._settle(now)
        return len(lost)

    def leave(self, now: int, worker: str, *, limit: int) -> int:
        """Return a worker's messages, and forget it when there were fewer than the limit."""
        returned = self._return_some(now, worker, limit)
        self._settle(now)
        return returned

    # Choosing ---------------------------------------------------------------------------------

    def _foremost(self, now: int) -> Owner | None:
        """Return the eligible owner with the least virtual time, of now."""
        for _ in range(MOST_LOOKS):
            if not self.eligible:
                return None
            name = least(self.eligible)
            start = self.owners[name].effective(now)
            if start <= self.eligible[name]:
                return self.owners[name]
            self.eligible[name] = start
        return self.owners[least(self.eligible)]

    def _next_of(self, owner: Owner) -> Message:
        submission = least(self.submissions[owner.name])
        return self.messages[least(self.ready[owner.name, submission])]

    def _expected_run(self, task: str) -> int | None:
        known = self.expected.get(task)
        return None if known is None else floor(known + 0.5)

    def _lease(
        self,
        now: int,
        worker: str,
        owner: Owner,
        message: Message,
        known: int | None,
        *,
        begins_at: int,
    ) -> Given:
        expected = floor((self.average or UNKNOWN_SECONDS * SECOND) + 0.5)
        if known is not None:
            expected = known
        self.virtual = owner.effective(now)
        owner.turn = self.submissions[owner.name][message.submission]
        self._take_out(message)
        if message.submission in self.submissions[owner.name]:
            self.submissions[owner.name][message.submission] += expected
        owner.start(now, expected=expected, begins_at=begins_at)
        self.lease_number += 1
        self.leases[message.id] = Lease(worker, self.lease_number, begins_at, expected)
        if message.lock:
            self.locks[message.lock] = message.id
        is_urgent = owner.cap > 0 or message.lock != ""
        return Given(
            *(message.id, self.lease_number, known, is_urgent),
            *(message.body, message.is_returned),
        )

    # Leases -----------------------------------------------------------------------------------

    def _lease_of(self, worker: str, mid: str, number: int) -> Lease | None:
        lease = self.leases.get(mid)
        is_its = lease and lease.number == number and lease.worker == worker
        return lease if is_its else None

    def _held(self, worker: str) -> Sequence[str]:
        """Return what a worker holds, in the order in which it was taken."""
        held = {mid: lease.number for mid, lease in self.leases.items() if lease.worker == worker}
        return by_score(held)

    def _end(self, now: int, mid: str, lease: Lease, *, run: int = 0) -> None:
        """End the charging of a lease, and free its lock, unless that has been done."""
        if lease.is_finished:
            return
        lease.is_finished = True
        message = self.messages[mid]
        owner = self.owners[message.owner]
        owner.end(now, started_at=lease.at, expected=lease.expected, run=run)
        submissions = self.submissions.get(owner.name, {})
        if message.submission in submissions:
            submissions[message.submission] += run - lease.expected
        self._free(message.lock, mid)
        self._touch(owner.name)

    def _learn(self, message: Message, run: int) -> None:
        owner = self.owners[message.owner]
        owner.served += run
        owner.finished += 1
        self.expected[message.task] = _moved(self.expected.get(message.task), run)
        self.average = _moved(self.average or None, run)

    def _put_back(
        self, now: int, mid: str, lease: Lease, *, delay: int = 0, is_rejected: bool = False
    ) -> None:
        rejected = round(REJECTED_SECONDS * SECOND) if is_rejected else 0
        self._end(now, mid, lease, run=rejected)
        del self.leases[mid]
        self.again.discard(mid)
        message = self.messages[mid]
        message.is_returned = True
        if is_rejected:
            self._set_order(now, message)
        if delay > 0:
            self.delayed[mid] = now + delay
        else:
            self._make_ready(message, behind=rejected)

    def _return_some(self, now: int, worker: str, limit: int) -> int:
        held = self._held(worker)[:limit]
        for mid in held:
            self._put_back(now, mid, self.leases[mid])
        if len(held) < limit:
            self.workers.pop(worker, None)
            self.takes.pop(worker, None)
        return len(held)

    def _return_unconfirmed(self, now: int, worker: str, confirmed: int) -> None:
        """Return what a lost reply left leased to nobody."""
        number, first_lease = self.takes.get(worker, (0, 0))
        if number != confirmed:
            for mid in self._held(worker):
                if self.leases[mid].number >= first_lease:
                    self._put_back(now, mid, self.leases[mid])

    def _return_from_dead(self, now: int, lease: int) -> None:
        """Return what a worker holds that has not been heard of for the length of a lease."""
        dead = [name for name in by_score(self.workers) if self.workers[name] < now - lease]
        if dead:
            self._return_some(now, dead[0], MOST_MOVED)


def _moved(average: float | None, run: int) -> float:
    return run if average is None else average + 0.2 * (run - average)
