"""Leases of the fair queue: what workers hold, and the effects of an end, a return or a death.

`queue.py` chooses whose message is next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleet.fairness.accounts import SECOND
from fleet.fairness.backlog import MOST_MOVED, Backlog, by_score
from fleet.fairness.messages import Lease, Message

REJECTED_SECONDS: Final = 0.001
"""The charge for a message that was rejected without a run; its submission waits for as long.

So neither is chosen first for ever.
"""


@dataclass
class Leasing(Backlog):
    """The leases of workers. Times are passed in, in whole microseconds."""

    lease_number: int = 0
    average: float = 0
    """The queue's expected run time; 0 until one is known."""
    expected: dict[str, float] = field(default_factory=dict)
    """Tasks and their expected run times."""
    workers: dict[str, int] = field(default_factory=dict)
    """Workers and the times of their last call."""
    takes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each worker, the number of its last take, and of the first lease in it."""

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
        """Remove messages. One that never ran costs nothing.

        If it was published again meanwhile, it is made ready again instead.
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
        """Take back messages that the worker will not run: id, lease, delay, is it rejected.

        They keep their order; a rejected one goes behind others of its priority.
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
        """Note that a worker lives; return how many messages it holds."""
        self.workers[worker] = now
        return len(self._held(worker))

    def keep(self, now: int, worker: str, leases: Iterable[tuple[str, int]]) -> int:
        """Take back the leases that a worker does not name; return how many.

        The named ones stay, even if its last take is unconfirmed.
        """
        named = {mid for mid, number in leases if self._lease_of(worker, mid, number)}
        lost = [mid for mid in self._held(worker) if mid not in named]
        for mid in lost:
            self._put_back(now, mid, self.leases[mid])
        self.takes.pop(worker, None)
        self._settle(now)
        return len(lost)

    def leave(self, now: int, worker: str, *, limit: int) -> int:
        """Take back a worker's messages; forget the worker if there were fewer than `limit`."""
        returned = self._return_some(now, worker, limit)
        self._settle(now)
        return returned

    def _lease_of(self, worker: str, mid: str, number: int) -> Lease | None:
        lease = self.leases.get(mid)
        is_its = lease and lease.number == number and lease.worker == worker
        return lease if is_its else None

    def _held(self, worker: str) -> Sequence[str]:
        """Return the ids of a worker's messages, in the order in which they were taken."""
        held = {mid: lease.number for mid, lease in self.leases.items() if lease.worker == worker}
        return by_score(held)

    def _end(self, now: int, mid: str, lease: Lease, *, run: int = 0) -> None:
        """End a lease's charge, and free its lock, unless that is done."""
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
        """Take back the messages of a take whose reply was lost."""
        number, first_lease = self.takes.get(worker, (0, 0))
        if number != confirmed:
            for mid in self._held(worker):
                if self.leases[mid].number >= first_lease:
                    self._put_back(now, mid, self.leases[mid])

    def _return_from_dead(self, now: int, lease: int) -> None:
        """Take back messages of a worker that has not called for the length of a lease."""
        dead = [name for name in by_score(self.workers) if self.workers[name] < now - lease]
        if dead:
            self._return_some(now, dead[0], MOST_MOVED)


def _moved(average: float | None, run: int) -> float:
    return run if average is None else average + 0.2 * (run - average)
