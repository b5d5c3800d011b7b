"""The backlog of a replay. Only the first calls of each submission are in the fair queue. Pure.

The fair queue in plain Python looks at all messages of a submission for each choice. With two of
them at a time it chooses the same, and a backlog of any length costs as little.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import floor
from typing import Final

from fleet.fairness.backlog import AGEING_SECONDS
from fleet.fairness.messages import Message
from fleet.fairness.queue import FairQueue
from jobs.forecast.replay.load import SECOND, Call

READY: Final = 2
"""Messages of a submission that are ready, so that it stays while one is taken."""
MOST_PARKED: Final = 64
"""Messages of a submission that wait for locks. Those behind them wait until one is ready."""

Line = tuple[str, str]


@dataclass
class Queue(FairQueue):
    """The fair queue; it notes the submissions whose messages it parks."""

    parked_of: set[Line] = field(default_factory=set)

    def _park(self, message: Message) -> None:
        super()._park(message)
        self.parked_of.add(message.line)


class Lines:
    """Calls by owner and submission, in the order of the fair queue."""

    def __init__(self, queue: Queue, calls: list[Call]) -> None:
        self._queue = queue
        self._calls = calls
        self._waiting: dict[Line, list[tuple[int, int]]] = defaultdict(list)
        self._fed: Counter[Line] = Counter()
        self._since: dict[int, tuple[int, int | None]] = {}
        """When calls became startable, and until when they may start."""
        self.count: Counter[str] = Counter()
        """Calls that wait, by owner."""

    def add(self, now: int, number: int, *, not_after: int | None) -> None:
        """Add a call that may start from now on, until before `not_after`."""
        call = self._calls[number]
        self._since[number] = now, not_after
        self.count[call.owner] += 1
        order = now - call.priority * floor(AGEING_SECONDS * SECOND)
        line = (call.owner, call.submission)
        ready = self._queue.ready.get(line, {})
        # A call of a higher priority comes before those that are in the queue.
        has_room = len(ready) < READY and self._fed[line] < MOST_PARKED
        if has_room or (ready and order < max(ready.values())):
            self._feed(now, line, number)
        else:
            heappush(self._waiting[line], (order, number))

    def since(self, number: int) -> int:
        """Return when a call that has been taken out became startable."""
        return self._since.pop(number)[0]

    def taken(self, now: int, number: int) -> None:
        """Note that a call has left the queue, and put the next one of its submission in."""
        call = self._calls[number]
        line = (call.owner, call.submission)
        self.count[call.owner] -= 1
        self._fed[line] -= 1
        self.fill(now, line)

    def refill(self, now: int) -> bool:
        """Put calls into the queue in place of those that it has parked; say whether any."""
        lines = sorted(self._queue.parked_of)
        count = sum(self.fill(now, line) for line in lines)
        # `fill` may have parked some of its own calls, and has already put others in their place.
        self._queue.parked_of.clear()
        return count > 0

    def fill(self, now: int, line: Line) -> int:
        """Put calls of a submission into the queue until enough are ready; return how many."""
        waiting, count = self._waiting.get(line), 0
        while waiting and len(self._queue.ready.get(line, ())) < READY:
            if self._fed[line] >= MOST_PARKED:
                break
            self._feed(now, line, heappop(waiting)[1])
            count += 1
        return count

    def _feed(self, now: int, line: Line, number: int) -> None:
        call = self._calls[number]
        since, not_after = self._since[number]
        self._fed[line] += 1
        message = Message(
            str(number),
            call.owner,
            call.submission,
            call.priority,
            # It ages from the time from which it could have started.
            delay=since - now,
            deadline=None if not_after is None else not_after - now,
            lock=call.lock and f"{call.owner}:{call.lock}",
            task=call.task,
        )
        self._queue.enqueue(now, [message])
