"""Replay a load through the fair queue in plain Python, from event to event. Pure.

Worker nodes are one node with all slots. It takes as a worker does: a message for each slot, and
more for 100 ms of expected run time a slot (`fleet/transport/qos.py`). The parts that are not
replayed are in docs/operate/planning.md.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heappop, heappush
from math import inf
from typing import Final

from fleet.fairness.queue import BUFFER_SECONDS
from jobs.forecast.replay.lines import Lines, Queue
from jobs.forecast.replay.load import SECOND, Call, Hours, Load, OutOfTime
from jobs.forecast.replay.results import Outcome, Shares
from jobs.forecast.replay.waves import Waves
from jobs.windows.gate import Gate, gate_of

LEASE: Final = 10**15
"""The worker of a replay does not die."""
WORKER: Final = "all"
BUFFER: Final = round(BUFFER_SECONDS * SECOND)
CHECKED: Final = 256
"""Events between two looks at the clock."""

ARRIVES, SLOT_IS_FREE, IS_REPORTED, LOOKS = range(4)


class Replay:
    """One replay; call `run` once."""

    def __init__(
        self,
        load: Load,
        *,
        outcome: Outcome | None = None,
        deadline: float | None = None,
        most: float = inf,
    ) -> None:
        """Raises OutOfTime from `run` after `deadline`, by `time.monotonic`.

        `run_to` stops after `most` events.
        """
        self.load = load
        self.calls: list[Call] = list(load.calls)
        self.queue = Queue()
        self.lines = Lines(self.queue, self.calls)
        self.waves = Waves(self.calls, load.gaps)
        self.outcome = outcome or Outcome(load)
        self.shares = Shares(load)
        self._deadline = deadline
        self._most = most
        self._each = load.each
        self._start_cost = load.overhead.start * load.each
        self._buffer = load.slots * BUFFER
        self._events: list[tuple[int, int, int]] = []
        self._stock: deque[int] = deque()
        """Calls that were taken and have no slot yet."""
        self._leases: dict[int, tuple[int, int]] = {}
        """By call: the number of its lease, and its part of the buffer."""
        self._buffered = 0
        self._free = load.slots
        self._number = 0
        self._head_waits = False
        self._looks_at = 0
        self._released: dict[int, int] = {}
        """When calls of held waves were released."""
        self._gates: dict[int, tuple[int, int | None]] = {}
        """By the id of hours, which calls share."""
        for name, one in load.owners.items():
            self.queue.set_owner(
                0,
                name,
                weight=one.weight,
                cap=one.cap,
                rate=one.rate / load.each,
                burst=max(1.0, one.rate / load.each),
            )

    def run(self) -> Outcome:
        """Replay all; return how each owner's calls went."""
        self.run_to(None)
        return self.outcome

    def run_to(self, end: datetime | None) -> bool:
        """Replay until a time, or all; say whether it has not stopped before."""
        last = inf if end is None else self._micros(end)
        heap = self._events
        held = self.waves.held
        heap.extend(
            (call.at, ARRIVES, number)
            for number, call in enumerate(self.calls)
            if number not in held
        )
        heap.sort()
        acts: tuple[Callable[[int, int], None], ...] = (
            self._arrive,
            self._free_slot,
            self._report,
            lambda _now, _number: None,
        )
        steps = events = 0
        while heap and heap[0][0] <= last:
            now = heap[0][0]
            while heap and heap[0][0] == now:
                _, kind, number = heappop(heap)
                acts[kind](now, number)
                events += 1
            self._take(now)
            steps += 1
            if events > self._most:
                return False
            if self._deadline and steps % CHECKED == 0 and time.monotonic() > self._deadline:
                raise OutOfTime
        self.outcome.close(self.shares, left=self.lines.count)
        return True

    # Calls become startable -------------------------------------------------------------------

    def _arrive(self, now: int, number: int) -> None:
        call = self.calls[number]
        not_after = self._start_by(number)
        if not_after is not None and not_after <= now:
            self._expire(now, call)
            return
        if call.hours is not None:
            opens_at, last = self._gate(call.hours, now)
            if opens_at is None:
                self.outcome.miss(call, is_final=True)
                return
            if opens_at > now:
                heappush(self._events, (opens_at, ARRIVES, number))
                return
            if last is not None:
                # The last moment is one at which it may start.
                not_after = last + 1 if not_after is None else min(not_after, last + 1)
        self.shares.waits(now, call.owner)
        self.lines.add(now, number, not_after=not_after)

    def _start_by(self, number: int) -> int | None:
        given = self.calls[number].start_by
        return None if given is None else given + self._released.get(number, 0)

    def _expire(self, now: int, call: Call) -> None:
        self.outcome.expire(call)
        self._end(now, call)

    def _end(self, now: int, call: Call) -> None:
        """A run has ended: the next wave of its submission may be released."""
        gap, numbers = self.waves.end(call)
        for number in numbers:
            self._released[number] = now + gap
            heappush(self._events, (now + gap + self.calls[number].at, ARRIVES, number))

    def _gate(self, hours: Hours, now: int) -> tuple[int | None, int | None]:
        """Return when it opens for a call, now or later, and until when the call may start."""
        known = self._gates.get(id(hours))
        if known is not None and known[0] <= now and (known[1] is None or now <= known[1]):
            return now, known[1]
        moment = self.load.since + timedelta(microseconds=now)
        gate: Gate = gate_of(hours.calendars, now=moment, needed=hours.needed, delay=hours.delay)
        if gate.is_open:
            last = None if gate.not_after is None else self._micros(gate.not_after)
            self._gates[id(hours)] = now, last
            return now, last
        return (None if gate.opens_at is None else max(now + 1, self._micros(gate.opens_at))), None

    def _micros(self, moment: datetime) -> int:
        return (moment - self.load.since) // timedelta(microseconds=1)

    # Slots ------------------------------------------------------------------------------------

    def _take(self, now: int) -> None:
        """Take messages while there is room, and start calls in free slots."""
        if self._looks_at and self._looks_at <= now:
            self._looks_at = 0
        while True:
            slots = self.load.slots - len(self._leases)
            budget = self._buffer - self._buffered
            if slots <= 0 and (self._head_waits or 4 * budget < self._buffer):
                break
            if not self.queue.eligible and not self._is_rested(now):
                break
            taken = self.queue.take(
                now,
                WORKER,
                lease=LEASE,
                confirmed=self._number,
                slots=int(slots > 0),
                budget=max(0, budget),
                most=1,
            )
            self._number = taken.number
            for mid in taken.diverted:
                self._divert(now, int(mid))
            for given in taken.messages:
                part = BUFFER if given.expected is None else min(given.expected, BUFFER)
                self._hold(now, int(given.id), given.lease, part)
            # Also if another call was taken: those behind the parked ones may be next.
            is_refilled = self.lines.refill(now)
            if not (taken.messages or taken.diverted or is_refilled):
                self._head_waits = slots <= 0 and bool(self.queue.eligible)
                break
        self._start_some(now)
        if self.queue.resting and self._free:
            self._look_at(now, int(min(self.queue.resting.values())) + 1)

    def _is_rested(self, now: int) -> bool:
        return bool(self.queue.resting) and min(self.queue.resting.values()) <= now

    def _look_at(self, now: int, at: int) -> None:
        at = max(at, now + 1)
        if not self._looks_at or at < self._looks_at:
            self._looks_at = at
            heappush(self._events, (at, LOOKS, 0))

    def _hold(self, now: int, number: int, lease: int, part: int) -> None:
        self._leases[number] = lease, part
        self._buffered += part
        self._stock.append(number)
        self.lines.taken(now, number)

    def _divert(self, now: int, number: int) -> None:
        """A call was not started in time: it expires, or waits for its next opening."""
        call = self.calls[number]
        self.lines.taken(now, number)
        self.lines.since(number)
        self.shares.leaves(now, call.owner)
        start_by = self._start_by(number)
        if start_by is not None and start_by <= now:
            self._expire(now, call)
            return
        self.outcome.miss(call, is_final=False)
        heappush(self._events, (now, ARRIVES, number))

    def _start_some(self, now: int) -> None:
        while self._free and self._stock:
            number = self._stock.popleft()
            call = self.calls[number]
            self._free -= 1
            starts_at = now + self._start_cost
            self.outcome.start(call, starts_at - self.lines.since(number), at=starts_at)
            self.shares.starts(now, call.owner)
            heappush(self._events, (starts_at + call.run * self._each, SLOT_IS_FREE, number))

    def _free_slot(self, now: int, number: int) -> None:
        call = self.calls[number]
        self._free += 1
        self.outcome.end(now)
        self.shares.ends(now, call.owner)
        heappush(self._events, (now + self.load.overhead.end, IS_REPORTED, number))
        if call.then is not None:
            self.calls.append(call.then)
            heappush(self._events, (now + call.then.at, ARRIVES, len(self.calls) - 1))
        else:
            self._end(now, call)

    def _report(self, now: int, number: int) -> None:
        """Free the cap, the lock and the part of the buffer."""
        call = self.calls[number]
        lease, part = self._leases.pop(number)
        self._buffered -= part
        self._head_waits = False
        self.queue.done(now, WORKER, [(str(number), lease, call.run * self._each)])
