"""Leases of the fair queue: what workers hold, and what an end, a return or a death does.

The other half of `queue.py`, which chooses whose message is next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleet.fairness.accounts import SECOND
from fleet.fairness.backlog import MOST_MOVED, Backlog, by_score
from fleet.fairness.messages import Lease, Message

REJECTED_SECONDS: Final = 0.001
"""What an owner pays for a message that was rejected without a run.

And its submission comes so much after its sisters: neither is chosen first for ever.
"""


@dataclass
class Leasing(Backlog):
    """What workers hold. Time is passed in, whole microseconds."""

    lease_number: int = 0
    average: float = 0
    """The queue's expected run time; 0 until one is known."""
    expected: dict[str, float] = field(default_factory=dict)
    """Tasks and their expected run times."""
    workers: dict[str, int] = field(default_factory=dict)
    """When they were last heard of."""
    takes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each worker the number of its last take, and that of the first lease in it."""

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
                    self.owners[self.messages[mid].owner].cancel_start(now)
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
