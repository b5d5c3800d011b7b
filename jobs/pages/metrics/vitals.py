"""Measure the installation: workers, beat, lags, what waits to be published."""

from __future__ import annotations

from typing import Final

from jobs.pages.metrics.samples import Samples
from jobs.system.rollups.metric_totals import OTHER, named_queues
from jobs.system.vitals import Vitals

VERSIONS: Final = 10
"""Versions of workers that are named, those with most workers."""


def measure(found: Vitals) -> Samples:
    """Return the samples of the vitals. What is not known has none."""
    samples = Samples()
    known = {
        "workers": found.workers,
        "slots": found.slots,
        "system_workers": found.system_workers,
        "beat_leading": int(found.is_beat_leading),
        "beat_lag_seconds": found.beat_lag,
        "tick_lag_seconds": found.tick_lag,
        "statistics_lag_seconds": found.statistics_lag,
        "unpublished_runs": found.unpublished,
        "unpublished_seconds": found.unpublished_seconds,
        "held_runs": found.held,
        "dead_letters": found.failed,
        "partitions_ahead": found.partitions_ahead,
        "database_bytes": found.database_bytes,
    }
    for family, value in known.items():
        if value is not None:
            samples.add(family, value)
    named = named_queues()
    for queue, count in found.workers_by_queue.items():
        samples.add("queue_workers", count, queue if queue in named else OTHER)
    ranked = sorted(found.versions, key=lambda version: (-found.versions[version], version))
    for version in ranked:
        label = version if version in ranked[:VERSIONS] else OTHER
        samples.add("worker_versions", found.versions[version], label)
    return samples
