"""Lease operations (finish, ack, give back) that Redis has not confirmed: batched per queue,
repeated until confirmed.

Every word carries the number of its lease, so saying it twice is harmless.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from redis import Redis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError

from fleet.transport import scripts
from fleet.transport.held_leases import Lease

logger = logging.getLogger(__name__)

SAY_WITHIN_SECONDS: Final = 0.1
"""An end and its acknowledgement that come within so long are one word."""
SAY_AT: Final = 200
UNHEARD_MOST: Final = 16
"""At most this many batches are unanswered; the next one waits."""
_ACTS: Final = ("finish", "done", "ack", "give_back")

_Name = tuple[str, int]
"""A lease's message, and its number."""


@dataclass(slots=True)
class Unsaid:
    """What is to be said of one queue: by scripts of these names, of leases, with more perhaps."""

    finish: dict[_Name, tuple[Any, ...]] = field(default_factory=dict)
    done: dict[_Name, tuple[Any, ...]] = field(default_factory=dict)
    ack: dict[_Name, tuple[Any, ...]] = field(default_factory=dict)
    give_back: dict[_Name, tuple[Any, ...]] = field(default_factory=dict)
    since: float = 0.0
    is_urgent: bool = False

    def __len__(self) -> int:
        return len(self.finish) + len(self.done) + len(self.ack) + len(self.give_back)

    def add(self, name: _Name, act: str, more: tuple[Any, ...]) -> None:
        if act == "ack" and name in self.finish:
            # Both in one word, which costs Redis little more than either.
            act, more = "done", self.finish.pop(name)
        getattr(self, act)[name] = more

    def calls(self, worker: str) -> list[scripts.Call]:
        said = [(act, getattr(self, act)) for act in _ACTS]
        return [
            (act, (worker, *(part for name, more in words.items() for part in (*name, *more))))
            for act, words in said
            if words
        ]


class Saying:
    """What a worker has still to say, by queue. Not thread-safe; the caller holds the lock."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._unsaid: dict[str, Unsaid] = defaultdict(Unsaid)
        self._said: deque[tuple[str, Unsaid, float]] = deque()
        """What was said ahead and may not have been heard, and when."""
        self._talk: scripts.Talk | None = None

    def __bool__(self) -> bool:
        return bool(self._unsaid or self._said)

    def __contains__(self, queue: str) -> bool:
        """Whether something is to be said of a queue, or was said and perhaps not heard."""
        return bool(self._unsaid.get(queue)) or any(said[0] == queue for said in self._said)

    def add(self, lease: Lease, act: str, *more: Any, is_urgent: bool) -> None:
        """Have something said of a lease: the name of a script, and its further arguments."""
        unsaid = self._unsaid[lease.queue]
        unsaid.since = unsaid.since or time.monotonic()
        unsaid.is_urgent = unsaid.is_urgent or is_urgent
        unsaid.add((lease.id, lease.number), act, more)

    def due(self) -> list[str]:
        """Return the queues of which something should be said now."""
        now = time.monotonic()
        return [
            queue
            for queue, unsaid in list(self._unsaid.items())
            if unsaid.is_urgent
            or (unsaid.since and now - unsaid.since >= SAY_WITHIN_SECONDS)
            or len(unsaid) >= SAY_AT
        ]

    def say_ahead(self, client: Redis, queues: Iterable[str]) -> None:
        """Say what is unsaid of these queues, and do not wait for an answer.

        What became of it is heard with a later word: what is refused raises its error then, and is
        to be said again.
        """
        self._hear(client, is_to_wait=len(self._said) >= UNHEARD_MOST)
        try:
            for queue in queues:
                unsaid = self.pop(queue)
                if calls := unsaid.calls(self._worker):
                    self._said.append((queue, unsaid, time.monotonic()))
                    if self._talk is None:
                        self._talk = scripts.Talk(client)
                    self._talk.send(queue, calls)
        except BaseException:
            self._unsay()
            raise

    @property
    def is_to_hear(self) -> bool:
        """Whether what was said ahead should have been heard by now, and can be without a wait."""
        if not self._said or self._talk is None:
            return False
        is_due = time.monotonic() - self._said[-1][2] >= SAY_WITHIN_SECONDS
        return (is_due and self._talk.is_answered) or self._is_overdue

    @property
    def _is_overdue(self) -> bool:
        """Whether the server has been silent for longer than a connection waits for it."""
        timeout = self._talk.timeout if self._talk is not None else None
        return timeout is not None and time.monotonic() - self._said[0][2] > timeout

    def _hear(self, client: Redis, *, is_to_wait: bool = True) -> None:
        """Hear what became of that which was said ahead: all of it, or what is answered by now.

        What may not have arrived is unsaid. Raises what the server refuses, and that it does not
        answer. A connection that is lost is no error of this one.
        """
        try:
            while self._said and self._talk is not None:
                if not is_to_wait and not self._talk.is_answered:
                    if self._is_overdue:
                        raise LostConnection("no answer in time")
                    return
                scripts.run_again(client, self._talk.hear())
                self._said.popleft()
        except (LostConnection, OSError) as error:
            logger.info("to be said again: %s", error)
            self._unsay()
        except BaseException:
            self._unsay()
            raise
        if not self._said:
            self._end_talk()

    def _unsay(self) -> None:
        """Take all back of which it is not known that it was heard: twice is harmless."""
        while self._said:
            queue, unsaid, _at = self._said.pop()
            self.put_first(queue, unsaid)
        self._end_talk()

    def _end_talk(self) -> None:
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()

    def say(self, client: Redis, queues: Iterable[str] | None = None) -> None:
        """Say what is unsaid of these queues, or of all."""
        with suppress(RedisError):
            self._hear(client)
        for queue in list(self._unsaid if queues is None else queues):
            with self.calls(client, queue) as calls:
                if calls:
                    scripts.run_all(client, queue, calls)

    @contextmanager
    def calls(self, client: Redis, queue: str) -> Iterator[list[scripts.Call]]:
        """Give the calls that say all of a queue; after an error it is to be said again."""
        with suppress(RedisError):  # it is said again, here
            self._hear(client)
        unsaid = self.pop(queue)
        try:
            yield unsaid.calls(self._worker)
        except BaseException:
            self.put_first(queue, unsaid)
            raise

    def pop(self, queue: str) -> Unsaid:
        """Return all that is to be said of a queue: the caller says it, or puts it back."""
        return self._unsaid.pop(queue, None) or Unsaid()

    def pop_next(self, client: Redis, queue: str) -> Unsaid:
        """Return it, to be said over another connection; nothing while earlier words are unheard.

        An acknowledgement that overtakes the end of its run would say that it never ran.
        """
        with suppress(RedisError):
            self._hear(client, is_to_wait=False)
        is_unheard = any(each[0] == queue for each in self._said)
        return Unsaid() if is_unheard else self.pop(queue)

    def put_first(self, queue: str, unsaid: Unsaid) -> None:
        """Have this said again, before what has come since."""
        if not unsaid:
            return
        later = self._unsaid[queue]
        for act in _ACTS:
            setattr(later, act, {**getattr(unsaid, act), **getattr(later, act)})
        later.since = unsaid.since or later.since
        later.is_urgent = later.is_urgent or unsaid.is_urgent
