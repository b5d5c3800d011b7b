"""One fair queue, two engines: the reference in plain Python, and the scripts on a real Redis."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from typing import Any

from django.conf import settings
from redis import Redis

from fleet.fairness.messages import Message, OwnerStats, Place
from fleet.fairness.queue import FairQueue, Given, Taken
from fleet.keys import queue_key
from fleet.transport import scripts
from tests.benchmarks.servers import client

SECOND = 1_000_000
START = 1_795_000_000 * SECOND
LEASE = 30 * SECOND


def connected() -> Redis:
    """Return a client of the tests' Redis."""
    return client(settings.REDIS_URL)


@dataclass
class LuaQueue:
    """The scripts behind the reference's methods."""

    client: Redis
    name: str

    def enqueue(self, now: int, messages: Iterable[Message]) -> int:
        return self.run("enqueue", now, *chain(*map(group, messages)))

    def take(self, now: int, worker: str, **how: int) -> Taken:
        facts = [how[name] for name in ("lease", "confirmed", "slots", "budget", "most")]
        number, sleep, _, diverted, _, _, *given = self.run("take", now, worker, *facts)
        return Taken(
            number,
            sleep > 0,
            [mid.decode() for mid in diverted],
            list(map(given_of, given)),
        )

    def finish(self, now: int, worker: str, runs: Iterable[tuple[str, int, int]]) -> int:
        return self.run("finish", now, worker, *chain(*runs))

    def ack(self, now: int, worker: str, leases: Iterable[tuple[str, int]]) -> int:
        return self.run("ack", now, worker, *chain(*leases))

    def done(self, now: int, worker: str, runs: Iterable[tuple[str, int, int]]) -> int:
        return self.run("done", now, worker, *chain(*runs))

    def give_back(self, now: int, worker: str, leases: Iterable[tuple[str, int, int, bool]]) -> int:
        values = [value for *facts, is_rejected in leases for value in (*facts, int(is_rejected))]
        return self.run("give_back", now, worker, *values)

    def renew(self, now: int, worker: str) -> int:
        return self.run("renew", now, worker)[0]

    def keep(self, now: int, worker: str, leases: Iterable[tuple[str, int]]) -> int:
        return self.run("keep", now, worker, *chain(*leases))

    def leave(self, now: int, worker: str, *, limit: int) -> int:
        return self.run("leave", now, worker, limit)

    def set_owner(self, now: int, name: str, **settings: float) -> None:
        facts = {"weight": 1, "cap": 0, "is_paused": 0, "rate": 0, "burst": 1} | settings
        weight, cap, is_paused, rate, burst = facts.values()
        self.run("owner", now, name, weight, cap, int(is_paused), rate, burst)

    def withdraw(self, now: int, ids: Iterable[str]) -> int:
        return self.run("withdraw", now, *ids)

    def purge(self, now: int) -> int:
        removed = 0
        while count := self.run("purge", now, 2):
            removed += count
        return removed

    def find(self, mid: str) -> Place:
        return place(self.run("find", START, mid))

    def owner_stats(self, now: int, names: Iterable[str]) -> dict[str, OwnerStats]:
        return {
            row[0].decode(): OwnerStats(
                *(int(row[5]), int(row[6]), int(row[7]), int(row[8])),
                float(row[9]),
                row[10] == b"1",
                float(row[11]) if row[11] else None,
            )
            for row in self.run("owners", now, 0, 0, *names)
        }

    def run(self, act: str, now: int, *arguments: Any) -> Any:
        return scripts.run(self.client, self.name, act, *arguments, now=now)

    def key(self, name: str, of: str = "") -> str:
        return queue_key(self.name, name, of)

    def keys(self) -> set[str]:
        """Return the names of its keys, without their common prefix."""
        base = self.key("state").removesuffix("state")
        found = self.client.keys(f"{base}*")
        return {key.decode().removeprefix(base) for key in found}

    def erase(self) -> None:
        base = self.key("state").removesuffix("state")
        self.client.delete(self.name, *[base + key for key in self.keys()])


Queue = FairQueue | LuaQueue


def group(message: Message) -> tuple[Any, ...]:
    """Return a message as the nine arguments of the scripts."""
    return (
        message.id,
        message.owner,
        message.submission,
        message.priority,
        message.delay,
        "" if message.deadline is None else message.deadline,
        message.lock,
        message.task,
        message.body,
    )


def given_of(row: Sequence[Any]) -> Given:
    mid, lease, expected, urgent, raw, returned = row
    known = int(expected) if expected else None
    return Given(mid.decode(), int(lease), known, urgent == b"1", raw, returned == b"1")


def place(found: Sequence[Any]) -> Place:
    state = found[0].decode()
    if state == "unknown":
        return Place(state)
    owner, submission = found[1].decode(), found[2].decode()
    number, owners_before, due = (None if found[at] == b"" else found[at] for at in (3, 9, 10))
    return Place(state, owner, submission, number, owners_before, None if due is None else int(due))


@dataclass
class World:
    """A queue, a clock that scenes turn, and workers that confirm what they take."""

    queue: Queue
    now: int = START
    confirmed: dict[str, int] = field(default_factory=dict)
    published: int = 0

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    def publish(self, owner: str, count: int = 1, **facts: Any) -> list[str]:
        """Publish messages of an owner; return their ids. Times in `facts` are in seconds."""
        for name in {"delay", "deadline"} & facts.keys():
            facts[name] = round(facts[name] * SECOND)
        messages = []
        for _ in range(count):
            self.published += 1
            messages.append(Message(f"{owner}-{self.published:05}:0", owner, **facts))
        ids = [message.id for message in messages]
        assert self.queue.enqueue(self.now, messages) == count
        return ids

    def owner(self, name: str, **settings: Any) -> None:
        self.queue.set_owner(self.now, name, **settings)

    def take(self, slots: int = 1, **how: Any) -> list[Given]:
        return self.taken(slots, **how).messages

    def taken(
        self,
        slots: int = 1,
        *,
        worker: str = "w1",
        budget: float = 0,
        most: int | None = None,
        is_reply_lost: bool = False,
    ) -> Taken:
        taken = self.queue.take(
            self.now,
            worker,
            lease=LEASE,
            confirmed=self.confirmed.get(worker, 0),
            slots=slots,
            budget=round(budget * SECOND),
            most=slots if most is None else most,
        )
        if not is_reply_lost:
            self.confirmed[worker] = taken.number
        return taken

    def ids(self, slots: int = 1, **how: Any) -> list[str]:
        return [given.id for given in self.take(slots, **how)]

    def end(self, given: Given, *, seconds: float = 0.0, worker: str = "w1") -> None:
        """Finish a message's run, and ack it."""
        assert self.finish(given, seconds=seconds, worker=worker) == 1
        assert self.ack(given, worker=worker) == 1

    def finish(self, given: Given, *, seconds: float = 0.0, worker: str = "w1") -> int:
        run = round(seconds * SECOND)
        return self.queue.finish(self.now, worker, [(given.id, given.lease, run)])

    def ack(self, given: Given, *, worker: str = "w1") -> int:
        return self.queue.ack(self.now, worker, [(given.id, given.lease)])

    def give_back(
        self, given: Given, *, delay: float = 0, is_rejected: bool = False, worker: str = "w1"
    ) -> int:
        facts = (given.id, given.lease, round(delay * SECOND), is_rejected)
        return self.queue.give_back(self.now, worker, [facts])

    def stats(self, name: str) -> OwnerStats:
        return self.queue.owner_stats(self.now, [name])[name]

    def state(self, mid: str) -> str:
        return self.queue.find(mid).state

    def serve(
        self, slots: int, seconds_of: Callable[[str], float], *, until: float
    ) -> tuple[dict[str, float], list[str]]:
        """Run a pool of slots for so long; return each owner's worker seconds, and who started.

        `seconds_of` an owner is how long its runs take. A slot takes its next message when it is
        free. What runs at the end is broken off there.
        """
        received: dict[str, float] = {}
        started: list[str] = []
        end = self.now + round(until * SECOND)
        free: list[tuple[int, int, Given | None]] = [
            (self.now, slot, None) for slot in range(slots)
        ]
        while free[0][0] < end:
            self.now, slot, given = heappop(free)
            if given:
                owner = given.id.rsplit("-", 1)[0]
                self.end(given, seconds=seconds_of(owner))
                received[owner] = received.get(owner, 0) + seconds_of(owner)
            taken = self.take(1)
            if taken:
                owner = taken[0].id.rsplit("-", 1)[0]
                started.append(owner)
                ends_at = self.now + round(seconds_of(owner) * SECOND)
                heappush(free, (ends_at, slot, taken[0]))
            else:
                heappush(free, (self.now + SECOND // 10, slot, None))
        self.now = end
        for ends_at, _, given in free:
            if given:
                owner = given.id.rsplit("-", 1)[0]
                part = seconds_of(owner) - (ends_at - end) / SECOND
                self.end(given, seconds=part)
                received[owner] = received.get(owner, 0) + part
        return received, started
