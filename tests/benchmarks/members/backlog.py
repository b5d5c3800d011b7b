"""backlog: whether a long queue slows down takes. The scripts alone, without a worker."""

import json
import time
from statistics import median

from fleet.transport import scripts
from tests.benchmarks.rows import Row
from tests.benchmarks.world import World

OWNERS = 100
BATCH = 64
WORKER = "bench"
LEASE_US = 30_000_000
RUN_US = 1_000
FILL = 500  # messages in one call
PASSES = 3  # in a round: each is short beside the filling


def measure(world: World) -> list[Row]:
    """Compare take + finish + ack with many waiting to the same with few."""
    sizes = [size // world.pick(1, 10) for size in (10_000, 100_000, 1_000_000)]
    world.begin()
    rates: dict[int, list[float]] = {}
    memory: dict[int, float] = {}
    for size in sizes:
        before = _memory(world)
        _Queue(world, size).fill(size)
        memory[size] = (_memory(world) - before) / size
        rates[size] = []
    queues = {size: _Queue(world, size, first=size) for size in sizes}
    for _ in range(PASSES * world.rounds):
        for size, queue in queues.items():
            rates[size].append(queue.drained(world.pick(3_000, 900)))
    few = sizes[0]
    rows = [
        Row(
            what=f"{size:,} waiting",
            unit="messages/s",
            figure=median(found),
            baseline=median(rates[few]) if size != few else None,
            against=f"{few:,} waiting" if size != few else "",
            at_least=0.9 if size == sizes[-1] else None,
            samples={f"{size} waiting": found},
        )
        for size, found in rates.items()
    ]
    size = len(_raw("")) + 36
    what = f"memory of Redis for a message of {size} bytes, {sizes[-1]:,} waiting"
    rows.append(Row(what=what, unit="bytes", figure=memory[sizes[-1]]))
    world.redis.flushdb(asynchronous=True)
    return rows


class _Queue:
    """A queue with a backlog that stays as large as it is."""

    def __init__(self, world: World, size: int, *, first: int = 0) -> None:
        self._redis = world.redis
        self._name = f"backlog{size}"
        self._next = first
        self._takes = 0

    def fill(self, count: int) -> None:
        """Enqueue `count` messages, in turn for each owner."""
        for start in range(0, count, FILL):
            groups: list[str] = []
            for _ in range(min(FILL, count - start)):
                task_id = f"00000000-0000-4000-8000-{self._next:012d}"
                owner = f"o{self._next % OWNERS}"
                groups += [f"{task_id}:0", owner, "", "5", "0", "", "", "bench.count"]
                groups.append(_raw(task_id))
                self._next += 1
            scripts.run(self._redis, self._name, "enqueue", *groups)

    def drained(self, count: int) -> float:
        """Return the messages/s at which one client takes and acknowledges `count`, in batches.

        As a worker does: what was taken last is finished and acknowledged with the next take.
        """
        began, taken = time.perf_counter(), 0
        calls: list[scripts.Call] = []
        while taken < count:
            call = ("take", (WORKER, LEASE_US, self._takes, BATCH, 0, BATCH))
            reply = scripts.run_all(self._redis, self._name, [*calls, call])[-1]
            self._takes = int(reply[0])
            messages = reply[6:]
            taken += len(messages)
            finished = [part for message in messages for part in (*message[:2], RUN_US)]
            calls = [("done", (WORKER, *finished))]
        scripts.run_all(self._redis, self._name, calls)
        rate = taken / (time.perf_counter() - began)
        self.fill(taken)
        return rate


def _raw(task_id: str) -> str:
    """Return a message as Celery and Kombu write it, with a small payload."""
    headers = {
        "lang": "py",
        "task": "bench.count",
        "id": task_id,
        "shadow": None,
        "eta": None,
        "expires": None,
        "group": None,
        "retries": 0,
        "timelimit": [None, None],
        "root_id": task_id,
        "parent_id": None,
        "argsrepr": "('edge-0017', 41)",
        "kwargsrepr": "{}",
        "origin": "gen1234@web-1",
        "ignore_result": True,
        "fairshift": {"owner": "o17"},
    }
    properties = {
        "correlation_id": task_id,
        "reply_to": "6c2f4f2e-4f3d-3c3c-9a76-4a4a4b1c0a11",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "jobs", "routing_key": "jobs"},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": task_id,
    }
    body = "W1siZWRnZS0wMDE3IiwgNDFdLCB7fSwgeyJjYWxsYmFja3MiOiBudWxsfV0=" * 2
    message = {"body": body, "content-encoding": "utf-8", "content-type": "application/json"}
    return json.dumps({**message, "headers": headers, "properties": properties})


def _memory(world: World) -> int:
    return int(world.redis.info("memory")["used_memory"])
