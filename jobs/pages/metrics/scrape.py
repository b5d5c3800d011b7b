"""One scrape: what PostgreSQL and Redis know at this moment, as far as they answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from django.db import Error, connection
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from fleet import BrokerUnavailable, one_line
from jobs.core import barrier, log_events
from jobs.core.conf import setting
from jobs.core.version import __version__
from jobs.owners.loads import Loads, loads
from jobs.pages.metrics import objectives, problems, queues, shares, totals, vitals
from jobs.pages.metrics.aside import Aside
from jobs.pages.metrics.samples import Samples
from jobs.rollouts.reads import counts_by_state
from jobs.system.rollups import metric_totals
from jobs.system.rollups.objectives import objectives as read_objectives
from jobs.system.vitals import vitals as read_vitals

logger = logging.getLogger(__name__)

REDIS_SECONDS: Final = 1.5
"""Most time of a scrape for Redis. Prometheus gives a scrape up after 10 s."""

T = TypeVar("T")


class Scrape(Collector):
    """The collector of one request. It keeps nothing, so that any web process may answer."""

    def __init__(self, *, is_database_away: bool = False) -> None:
        self._is_database_away = is_database_away

    def describe(self) -> Iterator[Any]:
        """Yield nothing: otherwise registering the collector would scrape."""
        yield from ()

    def collect(self) -> Iterator[Any]:
        """Yield the families of all parts that answer."""
        began = time.monotonic()
        asked = Aside(lambda: loads(seconds=REDIS_SECONDS))
        samples = Samples()
        samples.add("info", 1, __version__)
        stored = self._ask(_measure_stored)
        samples.update(stored or Samples())
        queued = _queued(asked, seconds=REDIS_SECONDS - (time.monotonic() - began))
        if queued is not None:
            named = queues.named_owners(queued, most=setting("METRICS_NAMES"))
            known = metric_totals.named_queues()
            samples.update(queues.measure(queued, queues=known, owners=named))
            samples.update(self._ask(lambda: _measure_shares(queued, named)) or Samples())
        found = self._ask(lambda: problems.measure(is_redis_away=queued is None))
        samples.update(found or Samples())
        samples.add("up", int(not self._is_database_away), "postgresql")
        samples.add("up", int(queued is not None), "redis")
        yield from samples.collect()

    def _ask(self, measure: Callable[[], Samples]) -> Samples | None:
        """Return what is measured in PostgreSQL; None if it is away, now or a moment ago."""
        if self._is_database_away:
            return None
        try:
            with barrier.lifted():
                return measure()
        except Error as error:
            log_events.METRICS_WITHOUT_DATABASE.log(logger, error=one_line(error))
            connection.close()
            self._is_database_away = True
            return None


def scraped(*, is_database_away: bool = False) -> bytes:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(Scrape(is_database_away=is_database_away))
    return generate_latest(registry)


def _measure_stored() -> Samples:
    samples = vitals.measure(read_vitals())
    for state, count in counts_by_state().items():
        samples.add("rollouts", count, state)
    samples.update(totals.measure(metric_totals.read()))
    samples.update(objectives.measure(read_objectives(None)))
    return samples


def _measure_shares(queued: Loads, named: list[str]) -> Samples:
    names = [*named, *shares.waiting_owners(queued.owners)]
    received = shares.read_received(names)
    return shares.measure(received, seen=queued.owners, owners=named)


def _queued(asked: Aside[Loads], *, seconds: float) -> Loads | None:
    try:
        return asked.result(seconds=max(0.0, seconds))
    except (BrokerUnavailable, TimeoutError) as error:
        problem = str(error) or "it takes too long"
        log_events.METRICS_WITHOUT_BROKER.log(logger, error=problem)
        return None
