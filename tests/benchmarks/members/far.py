"""far: how busy a worker's slots are when PostgreSQL and Redis are some milliseconds away."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlencode

from django.db import connection

from tests.benchmarks.rows import Row
from tests.benchmarks.world import World
from tests.proxy import Faults, Proxy

SLOTS = 4
RUN_SECONDS = 0.05
DELAYS_MS = (0, 1, 5, 20)
OWNER = "far"
BUSY = 0.9
"""The least part of the ideal at 20 ms."""


def measure(world: World) -> list[Row]:
    """Compare durable runs with every slot always busy, by the delay of each reply.

    From the first start to the last end, of which the first runs are left out: the queue learns
    from them how long they take.
    """
    count = world.pick(800, 100)
    busy = {delay: _busy(world, delay, count=count) for delay in DELAYS_MS}
    return [
        Row(
            what=f"{count} durable runs of {RUN_SECONDS * 1000:g} ms, replies {delay} ms late",
            unit="of slots busy",
            figure=busy[delay],
            baseline=busy[0],
            against="no delay",
            at_least=BUSY if delay == max(DELAYS_MS) else None,
            of_figure=True,
        )
        for delay in DELAYS_MS
    ]


def _busy(world: World, delay_ms: int, *, count: int) -> float:
    from jobs import submit_many
    from jobs.models import Owner

    Owner.objects.get_or_create(slug=OWNER)
    world.begin()
    with _far(world, delay_ms) as there, there.workers(there.fair, slots=SLOTS) as stack:
        stack.wait_ready(seconds=60)
        learn = 4 * SLOTS
        for number in (learn, count):
            submit_many(
                "bench.work", [{"owner": OWNER, "seconds": RUN_SECONDS}] * number, owner=OWNER
            )
            done = learn if number == learn else learn + count
            runs = sorted(
                world.wait_ran(stack, OWNER, done, patience=120), key=lambda ran: ran.began
            )
    measured = runs[learn:]
    took = max(ran.ended for ran in measured) - min(ran.began for ran in measured)
    worked = sum(ran.ended - ran.began for ran in measured)
    return worked / (took * SLOTS)


@contextmanager
def _far(world: World, delay_ms: int) -> Iterator[World]:
    """Give a world whose workers reach both servers through proxies that delay each reply."""
    given = connection.settings_dict
    late = Faults(delay_seconds=delay_ms / 1000)
    host, port = given["HOST"], given["PORT"] or 5432
    postgres = f"unix://{host}/.s.PGSQL.{port}" if host.startswith("/") else f"tcp://{host}:{port}"
    with Proxy(world.environment["REDIS_URL"]) as redis, Proxy(postgres) as database:
        redis.faults = database.faults = late
        login = {key: given[key.upper()] for key in ("user", "password") if given[key.upper()]}
        query = urlencode({**login, "host": "127.0.0.1", "port": database.port})
        urls = {"REDIS_URL": redis.url, "DATABASE_URL": f"postgresql:///{given['NAME']}?{query}"}
        yield replace(world, environment={**world.environment, **urls})
