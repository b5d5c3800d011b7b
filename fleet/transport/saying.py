"""What a process has still to say of what it holds: many words in one call, and none is lost.

Every word carries the number of its lease, so saying it twice is harmless.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from redis import Redis

from fleet.transport import scripts
from fleet.transport.holding import Lease

SAY_WITHIN_SECONDS: Final = 0.05
SAY_AT: Final = 100
"""Words: an end and an acknowledgement are two."""
_ACTS: Final = ("finish", "ack", "give_back")


@dataclass(slots=True)
class _Unsaid:
    """What is to be said of one queue, as arguments of the scripts of these names."""

    finish: list[Any] = field(default_factory=list)
    ack: list[Any] = field(default_factory=list)
    give_back: list[Any] = field(default_factory=list)
    count: int = 0
    since: float = 0.0
    is_urgent: bool = False

    def calls(self, worker: str) -> list[scripts.Call]:
        return [(act, (worker, *said)) for act in _ACTS if (said := getattr(self, act))]


class Saying:
    """What a worker has still to say, by queue. Whoever calls sees to threads."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._unsaid: dict[str, _Unsaid] = defaultdict(_Unsaid)

    def __bool__(self) -> bool:
        return bool(self._unsaid)

    def add(self, lease: Lease, act: str, *more: Any, is_urgent: bool) -> None:
        """Have something said of a lease: the name of a script, and its further arguments."""
        unsaid = self._unsaid[lease.queue]
        unsaid.count += 1
        unsaid.since = unsaid.since or time.monotonic()
        unsaid.is_urgent = unsaid.is_urgent or is_urgent
        getattr(unsaid, act).extend((lease.id, lease.number, *more))

    def due(self) -> list[str]:
        """Return the queues of which something should be said now."""
        now = time.monotonic()
        return [
            queue
            for queue, unsaid in list(self._unsaid.items())
            if unsaid.is_urgent
            or (unsaid.since and now - unsaid.since >= SAY_WITHIN_SECONDS)
            or unsaid.count >= SAY_AT
        ]

    def say(self, client: Redis, queues: Iterable[str] | None = None) -> None:
        """Say what is unsaid of these queues, or of all."""
        for queue in list(self._unsaid if queues is None else queues):
            with self.calls(queue) as calls:
                if calls:
                    scripts.run_all(client, queue, calls)

    @contextmanager
    def calls(self, queue: str) -> Iterator[list[scripts.Call]]:
        """Give the calls that say all of a queue; after an error it is to be said again."""
        unsaid = self._unsaid.pop(queue, None) or _Unsaid()
        calls = unsaid.calls(self._worker)
        try:
            yield calls
        except BaseException:
            if calls:
                self._put_first(queue, unsaid)
            raise

    def _put_first(self, queue: str, unsaid: _Unsaid) -> None:
        later = self._unsaid[queue]
        for act in _ACTS:
            getattr(later, act)[:0] = getattr(unsaid, act)
        later.count += unsaid.count
        later.since = unsaid.since or later.since
        later.is_urgent = later.is_urgent or unsaid.is_urgent
