"""The backlog of a replay. Only the first calls of each submission are in the fair queue. Pure.

The fair queue in plain Python looks at all messages of a submission for each choice. With two of
them at a time it chooses the same, and a backlog of any length costs as little.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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


class Lines:
    """Calls by owner and submission, in the order of the fair queue."""

    def __init__(self, queue: FairQueue, calls: list[Call]) -> None:
        self._queue = queue
        self._calls = calls
        self._waiting: dict[Line, list[tuple[int, int]]] = defaultdict(list)
        self._fed: Counter[Line] = Counter()
        self._locked: set[Line] = set()
        """Lines with calls that have a lock."""
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
        if call.lock:
            self._locked.add(line)
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
        before = self._fed.total()
        for line in self._locked:
            self.fill(now, line)
        return self._fed.total() > before

    def fill(self, now: int, line: Line) -> None:
        """Put calls of a submission into the queue until enough are ready."""
        waiting = self._waiting.get(line)
        while waiting and len(self._queue.ready.get(line, ())) < READY:
            if self._fed[line] >= MOST_PARKED:
                return
            self._feed(now, line, heappop(waiting)[1])

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
