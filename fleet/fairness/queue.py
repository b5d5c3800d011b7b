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

from dataclasses import dataclass
from math import floor
from typing import Final, NamedTuple

from fleet.fairness.accounts import SECOND, Owner
from fleet.fairness.backlog import least
from fleet.fairness.leasing import Leasing
from fleet.fairness.messages import Lease, Message

UNKNOWN_SECONDS: Final = 0.1
"""What a run is charged at first when no run of the queue has ended yet."""

BUFFER_SECONDS: Final = 0.1
"""A worker holds messages for its slots, and beyond these so much expected run time a slot.

What is held beyond the slots begins so much later: it would be charged for its wait, else, and
whoever comes new would enter behind runs that nobody has had.
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
class FairQueue(Leasing):
    """The whole queue: beside what waits, who is next, and what workers hold."""

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
