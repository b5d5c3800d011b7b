"""metrics: how long a scrape takes, and what scrapes cost a durable drain."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from fleet.stack.programs import web
from fleet.stack.stack import free_port
from tests.benchmarks.http_client import HttpClient
from tests.benchmarks.members.drain import OWNERS
from tests.benchmarks.members.durable import drained, submitted
from tests.benchmarks.rows import Row
from tests.benchmarks.world import MEMBER_SECONDS, START_SECONDS, World

SLOTS = 2
EVERY_SECONDS = 15.0
"""How often Prometheus scrapes, as shipped."""
MEASURED_EVERY_SECONDS = 0.5
"""How often it is scraped while the drain is measured: in seconds, there would be no scrape."""


class Scraper(HttpClient):
    """One connection of a program that scrapes."""

    root = ""

    def scrape(self) -> float:
        """Scrape once; return the milliseconds."""
        began = time.monotonic()
        self.call("GET", "/metrics", status=200)
        return 1_000 * (time.monotonic() - began)


def measure(world: World) -> list[Row]:
    """Scrape while nothing waits, and while much does; and during a drain."""
    world.begin()
    with _served(world) as scraper:
        rows = [_scraped(world, scraper, "nothing")]
        waiting = [50_000] if world.is_quick else [50_000, world.pick(300_000, 0, large=1_000_000)]
        stored = 0
        for count in waiting:
            submitted([f"o{n}" for n in range(OWNERS)], count=count - stored)
            stored = count
            rows.append(_scraped(world, scraper, f"{count:,} runs"))
        return [*rows, _cost(world, scraper)]


@contextmanager
def _served(world: World) -> Iterator[Scraper]:
    from jobs.owners.tokens import make_token

    port = free_port(8_070)
    environment = {"ALLOWED_HOSTS": "127.0.0.1"}
    with world.up(web(port=port, processes=1, threads=2, environment=environment)) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        scraper = Scraper(port, make_token("bench", scopes=["read"]).secret)
        scraper.scrape()
        yield scraper
        scraper.close()


def _scraped(world: World, scraper: Scraper, waiting: str) -> Row:
    took = [scraper.scrape() for _ in range(world.pick(20, 5))]
    return Row(
        what=f"a scrape while {waiting} of {OWNERS} owners wait; the worst: {max(took):.0f} ms",
        unit="ms",
        figure=median(took),
        at_most=1_000,
        of_figure=True,
        samples={"scrapes": took},
    )


def _cost(world: World, scraper: Scraper) -> Row:
    """Return how much slower a drain is with a scrape every 15 s, from many more scrapes."""
    count = 6_000
    with_scrapes, without = [], []
    for _ in world.turns(seconds=MEMBER_SECONDS / 2):
        without.append(drained(world, owners=OWNERS, count=count, slots=SLOTS)[0])
        with _scraping(scraper):
            with_scrapes.append(drained(world, owners=OWNERS, count=count, slots=SLOTS)[0])
    loss = 100 * (1 - median(with_scrapes) / median(without))
    return Row(
        what=f"less throughput of a durable drain by a scrape every {EVERY_SECONDS:g} s, from one "
        f"every {MEASURED_EVERY_SECONDS:g} s ({loss:.1f} %)",
        unit="%",
        figure=loss * MEASURED_EVERY_SECONDS / EVERY_SECONDS,
        at_most=1.0,
        of_figure=True,
        samples={"with": with_scrapes, "without": without},
    )


@contextmanager
def _scraping(scraper: Scraper) -> Iterator[None]:
    """Scrape again and again until the block ends."""
    is_over = threading.Event()

    def scrape() -> None:
        while not is_over.wait(MEASURED_EVERY_SECONDS):
            scraper.scrape()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
