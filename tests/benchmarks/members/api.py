"""api: what the REST API does with two gunicorn processes, over real HTTP."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any, Final

from jobs.management.stack.programs import web
from jobs.management.stack.stack import free_port
from tests.benchmarks.figures import percentile
from tests.benchmarks.http_client import HttpClient, at_a_rate, side_by_side
from tests.benchmarks.rows import Row
from tests.benchmarks.runs_in_rows import FILTERS, put_in
from tests.benchmarks.world import START_SECONDS, World

OWNER: Final = "api"
INTERVALS: Final = (1, 2, 5, 15, 60, 1_440)
CLIENTS: Final = 8
"""Connections that send one request after another: as many as the web processes have threads."""
SUBMITS_PER_SECOND: Final = 50
RUNS_OF_ONE_REQUEST: Final = 3_000
SCOPES: Final = ("read", "submit", "operate", "approve", "admin")
WEB: Final = {
    "ALLOWED_HOSTS": "127.0.0.1",
    "FAIRSHIFT_OFFERED_TASKS": "bench.*",
    "FAIRSHIFT_API_TOKEN_PER_MINUTE": "10000000",
    "FAIRSHIFT_API_OWNER_PER_MINUTE": "10000000",
}
"""The requests of a benchmark are of one token; all else is as shipped."""


def measure(world: World) -> list[Row]:
    """Measure the four figures of the API; commits are durable."""
    from jobs.models import Owner
    from jobs.owners.tokens import make_token

    world.commits_are_durable()
    owner, _ = Owner.objects.get_or_create(slug=OWNER)
    secret = make_token("benchmark", scopes=SCOPES, owner=owner).secret
    world.begin()
    with _served(world) as port:
        client = partial(HttpClient, port, secret)
        rows = [*_crud(world, client), _submission(world, client), _paced(world, client)]
        rows.append(_lists(world, client))
    world.begin()
    return rows


@contextmanager
def _served(world: World) -> Iterator[int]:
    port = free_port(8_040)
    with world.up(web(port=port, processes=2, threads=4, environment=WEB)) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        yield port


def _crud(world: World, client: partial[HttpClient]) -> list[Row]:
    # One round of 6,000 showed 13 % between versions that several rounds show within 3 %.
    count = world.pick(2_000, 400)
    rates: dict[str, list[float]] = {"create": [], "update": [], "delete": []}
    # Each process opens its connections, and plans its statements.
    _one_by_one(client, 20 * CLIENTS, begin="warm")
    for number in world.turns(seconds=90):
        for verb, rate in _one_by_one(client, count, begin=f"round-{number}").items():
            rates[verb].append(60 * rate)
    return [
        Row(
            what=f"{verb} a job, one request each, {CLIENTS} connections",
            unit="jobs/min",
            figure=median(found),
            at_least=30_000,
            of_figure=True,
            samples={verb: found},
        )
        for verb, found in rates.items()
    ]


def _one_by_one(client: partial[HttpClient], count: int, *, begin: str) -> dict[str, float]:
    """Return the jobs/s of each verb; every answer is checked."""

    def create(http: HttpClient, number: int) -> tuple[str, str]:
        made = http.call("POST", "/jobs", _job(begin, number), status=201)
        return made.headers["location"].removeprefix("/api/v1"), made.headers["etag"]

    made, took = side_by_side(client, create, count, clients=CLIENTS)

    def update(http: HttpClient, number: int) -> str:
        path, etag = made[number]
        return http.call("PATCH", path, {"priority": 2}, etag=etag, status=200).headers["etag"]

    etags, took_update = side_by_side(client, update, count, clients=CLIENTS)

    def delete(http: HttpClient, number: int) -> None:
        http.call("DELETE", made[number][0], etag=etags[number], status=204)

    _, took_delete = side_by_side(client, delete, count, clients=CLIENTS)
    return {"create": count / took, "update": count / took_update, "delete": count / took_delete}


def _job(begin: str, number: int) -> dict[str, Any]:
    return {
        "key": f"{begin}-{number:06}",
        "name": f"Backup of device {number}",
        "task": "bench.work",
        "arguments": {"owner": OWNER, "number": number},
        "labels": {"site": f"site-{number % 100}"},
        "interval_minutes": INTERVALS[number % len(INTERVALS)],
        "priority": 1,
    }


def _submission(world: World, client: partial[HttpClient]) -> Row:
    http, took = client(), []
    body = {
        "task": "bench.work",
        "arguments": [{"owner": OWNER, "number": number} for number in range(RUNS_OF_ONE_REQUEST)],
    }
    for _ in range(world.pick(10, 3)):
        began = time.monotonic()
        http.call("POST", "/submissions", body, status=202)
        took.append(time.monotonic() - began)
    http.close()
    world.begin()
    return Row(
        what=f"one request with {RUNS_OF_ONE_REQUEST:,} runs, the slowest of {len(took)}",
        unit="s",
        figure=max(took),
        at_most=0.5,
        of_figure=True,
        samples={"seconds": took},
    )


def _paced(world: World, client: partial[HttpClient]) -> Row:
    """Submit at a fixed rate while two slots have more work than they can do."""
    seconds = world.pick(30, 6)

    def submit(http: HttpClient, number: int) -> None:
        arguments = {"owner": OWNER, "number": number}
        http.call("POST", "/runs", {"task": "bench.work", "arguments": arguments}, status=202)

    with world.workers(world.fair, slots=2) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        backlog = [{"owner": OWNER, "seconds": 0.02}] * (150 * seconds)
        http = client()
        for first in range(0, len(backlog), RUNS_OF_ONE_REQUEST):
            part = backlog[first : first + RUNS_OF_ONE_REQUEST]
            http.call("POST", "/submissions", {"task": "bench.work", "arguments": part}, status=202)
        http.close()
        # The worker has started its children when some runs have ended.
        world.wait_ran(stack, OWNER, 100)
        took = at_a_rate(
            client, submit, per_second=SUBMITS_PER_SECOND, seconds=seconds, clients=CLIENTS
        )
    world.begin()
    return Row(
        what=f"{SUBMITS_PER_SECOND} submits a second for {seconds} s, workers busy, p99",
        unit="ms",
        figure=1000 * percentile(took, 99),
        at_most=50,
        of_figure=True,
        samples={"seconds": took},
    )


def _lists(world: World, client: partial[HttpClient]) -> Row:
    count = world.pick(1_000_000, 50_000, large=10_000_000)
    put_in(count, owner=OWNER)
    http, medians = client(), {}
    for name, query in FILTERS.items():
        took = []
        for _ in range(world.pick(7, 3)):
            began = time.monotonic()
            http.call("GET", f"/runs?{query}", status=200)
            took.append(1000 * (time.monotonic() - began))
        medians[name] = median(took)
    http.close()
    slowest = max(medians, key=lambda name: medians[name])
    return Row(
        what=f"a list of runs over {count:,} rows, the slowest of {len(medians)}: {slowest}",
        unit="ms",
        figure=medians[slowest],
        at_most=200,
        of_figure=True,
        samples={name: [value] for name, value in medians.items()},
    )
