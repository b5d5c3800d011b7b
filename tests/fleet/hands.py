"""A fair queue at work, into whose keys another client writes."""

from collections import Counter
from typing import Any

import redis
from celery import current_app

from fleet.keys import queue_key
from fleet.transport.adoption import adopt
from fleet.transport.envelope import ONCE
from fleet.transport.lease_taking import Room
from fleet.transport.leases import Leases
from tests.waiting import wait_for

QUEUE = "jobs"
MINUTE_US = 60_000_000


class Scene:
    """A worker that holds a message with a lock, one that sleeps, and one that takes and ends."""

    def __init__(self, channel: Any) -> None:
        self.channel, self.client = channel, channel.client
        self.holder, self.idle, self.other = Leases(), Leases(), Leases()
        self.ended: Counter[str] = Counter()
        self.take(self.idle)
        publish("held", lock="door")
        [self.held] = wait_for(lambda: self.take(self.holder))
        self.holder.start(self.held)
        publish("a", "b")
        publish("parked", lock="door")

    def take(self, leases: Leases, slots: int = 1) -> list[str]:
        found = leases.take(
            self.client, QUEUE, Room(slots, 0), channel="it", lease_us=MINUTE_US, most=100
        )
        if found.has_foreign:
            self.channel._with_repair([QUEUE], adopt, self.channel, QUEUE)
        return [lease.tag for lease in found.messages]

    def go_on(self) -> bool:
        """Have a worker take and end what is ready; say whether there was any."""
        # The other one's thread hears of a new epoch.
        self.holder.renew(self.client)
        tags = self.take(self.other)
        for tag in tags:
            self.ended[tag.removeprefix(ONCE).partition("#")[0]] += 1
            self.other.finish(tag, 0.01)
            self.other.ack(tag)
        self.other.flush(self.client)
        return bool(tags)

    def end(self, *names: str) -> None:
        """Continue until these have ended and nothing more is ready."""
        wait_for(lambda: not self.go_on() and set(names) <= set(self.ended), seconds=10)

    def finish_held(self) -> None:
        self.holder.finish(self.held, 0.01)
        self.holder.ack(self.held)
        self.holder.flush(self.client)


def publish(*ids: str, owner: str = "acme", lock: str = "") -> None:
    """Call a plain task under each of these ids."""
    facts = {"owner": owner, **({"lock": lock} if lock else {})}
    for task_id in ids:
        current_app.send_task(
            "tests.add", message_id=task_id, queue=QUEUE, headers={"fairshift": facts}
        )


def mended(client: redis.Redis) -> int:
    return int(client.hget(queue_key(QUEUE, "counters"), "mended") or 0)
