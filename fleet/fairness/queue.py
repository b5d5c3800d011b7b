"""The fair queue in plain Python: the reference for the Lua scripts. It may be slow.

Owners share a queue's workers by weight; the submissions of an owner share equally. Within a
submission, messages are ordered by priority and age.

- **Start-time fair queueing** (Goyal, Vin, Cheng: SIGCOMM 1996), in worker seconds. The owner with
  the least virtual time is next, and is charged the expected run time divided by its weight. At the
  end of the run, the actual time replaces the expected one.
- **Long runs are charged while they run**: a run in flight counts as expected, or as long as it has
  run if that is more (`accounts.Owner.in_flight`).
- **The queue's virtual time** is that of the owner that was chosen last. It may decrease: an owner
  that was charged too much gets a refund, and a newcomer then starts level with it.
- **Idling earns no credit**: an owner that returns is level with the queue. If no owner may be
  chosen, a busy period ends, and debts end with it.

Times are passed in, in whole microseconds. Adoption, quarantine, wake-ups and epochs are parts of
the transport and not modelled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Final, NamedTuple

from fleet.fairness.accounts import SECOND, Owner
from fleet.fairness.backlog import least
from fleet.fairness.leasing import Leasing
from fleet.fairness.messages import Lease, Message

UNKNOWN_SECONDS: Final = 0.1
"""The first charge of a run if no run of the queue has ended yet."""

BUFFER_SECONDS: Final = 0.1
"""The expected run time for each slot that a worker holds beyond its slots.

Such a message counts as started only after this time: otherwise its wait would be charged as run
time, and a newcomer would start behind runs that have not happened.
"""

MOST_LOOKS: Final = 64
"""How many out-of-date owners are updated before the best so far is chosen."""


class Given(NamedTuple):
    """A message as a worker gets it."""

    id: str
    lease: int
    expected: int | None
    is_urgent: bool
    """Others may wait for its end: report it at once."""
    body: bytes
    is_redelivered: bool = False
    """A worker has given it back before."""


class Taken(NamedTuple):
    number: int
    """The number of this reply. The worker names it in its next take, since a reply may be lost."""
    is_empty: bool
    """No message is left that may be chosen now."""
    diverted: list[str]
    """Messages that were removed, as their deadline had passed."""
    messages: list[Given]


@dataclass
class FairQueue(Leasing):
    """The whole queue: chooses the next messages."""

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
        """Lease the next messages to a worker.

        It gets up to `slots` messages at any cost, and more, up to `most` in all, while their
        expected run times are known and their sum is at most `budget`.
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

    # Choosing ---------------------------------------------------------------------------------

    def _foremost(self, now: int) -> Owner | None:
        """Return the eligible owner with the least virtual time."""
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
