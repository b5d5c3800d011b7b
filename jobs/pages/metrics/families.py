"""The catalogue of metrics: each family with its kind, its labels and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

PREFIX: Final = "fairshift_"


class Kind(Enum):
    """The kind of a family, with the class that writes it."""

    COUNTER = CounterMetricFamily
    GAUGE = GaugeMetricFamily
    HISTOGRAM = HistogramMetricFamily


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `name` is without the prefix, and without `_total` for a counter."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name in Prometheus; that of a histogram gets `_bucket`, `_count` or `_sum`."""
        return f"{PREFIX}{self.name}{'_total' if self.kind is Kind.COUNTER else ''}"


def _counter(name: str, text: str, *labels: str) -> Family:
    return Family(name, Kind.COUNTER, text, labels)


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(name, Kind.GAUGE, text, labels)


_EACH: Final = ("owner", "queue")

FAMILIES: Final = (
    _gauge("up", "1 if this part answered the scrape, else 0.", "part"),
    _gauge("info", "1, with the version of Fairshift of this web process.", "version"),
    _gauge(
        "problem",
        "1 for each problem of the verdict that is about the installation, as `status` names it.",
        *("code", "level"),
    ),
    # Totals of the statistics: they rise when a minute is final.
    _counter("submitted", "Runs that were submitted, or that a job made."),
    _counter("started", "Attempts that started and have ended."),
    _counter("outcomes", "Attempts and unstarted runs that ended, by outcome.", "outcome"),
    _counter("missed_spans", "Spans of due times that were not run, by reason.", "reason"),
    _counter("owner_submitted", "Runs that were submitted, or that a job made.", *_EACH),
    _counter("owner_started", "Attempts that started and have ended.", *_EACH),
    _counter(
        "owner_outcomes", "Attempts and unstarted runs that ended, by outcome.", *_EACH, "outcome"
    ),
    Family("wait_seconds", Kind.HISTOGRAM, "From queued to started, of ended attempts.", _EACH),
    Family("run_seconds", Kind.HISTOGRAM, "From started to ended, of ended attempts.", _EACH),
    # The fair queues in Redis.
    _counter("queue_messages", "Messages of a queue, by what happened to them.", "queue", "event"),
    _gauge("queue_ready", "Messages that are ready, or wait for a lock.", "queue"),
    _gauge("queue_delayed", "Messages that are due later.", "queue"),
    _gauge("queue_leased", "Messages that workers have.", "queue"),
    _gauge("queue_eligible_owners", "Owners that may be chosen next.", "queue"),
    _gauge("queue_in_quarantine", "Malformed messages that were put aside.", "queue"),
    _gauge("queue_oldest_wait_seconds", "Wait of the oldest ready message.", "queue"),
    _gauge("queue_workers", "Workers that are alive and take from the queue.", "queue"),
    # Owners in the fair queues.
    _gauge("owner_backlog", "Ready messages of an owner.", "owner"),
    _gauge("owner_running", "Messages of an owner that workers have.", "owner"),
    _gauge("owner_oldest_wait_seconds", "Wait of an owner's oldest ready message.", "owner"),
    _gauge(
        "owner_takes_turns",
        "1 if the owner may be chosen; 0 if it is paused, at its cap, over its rate or idle.",
        "owner",
    ),
    _gauge(
        "owner_share_entitled", "Share by weight among the owners that have work, 0 to 1.", "owner"
    ),
    _gauge(
        "owner_share_received", "Share of the worker time of the last 5 minutes, 0 to 1.", "owner"
    ),
    _gauge(
        "jain_index",
        "Jain's index of received by entitled share: 1 is fair. Owners that may be chosen and have"
        " waited for a minute count.",
    ),
    # Wait objectives of owners, from the statistics.
    _gauge("owner_objective_seconds", "Wait that the objective of an owner allows.", "owner"),
    _gauge(
        "owner_objective_part", "Part of the starts that are to wait no longer, 0 to 1.", "owner"
    ),
    _gauge(
        "owner_objective_burn_rate",
        "Part of late starts by the part that may be late, in the last 5m, 30m, 1h or 6h.",
        *("owner", "span"),
    ),
    # The installation, from PostgreSQL.
    _gauge("workers", "Workers that are alive and take from a fair queue."),
    _gauge("slots", "Slots of these workers."),
    _gauge("system_workers", "Workers that are alive and take from the system's queue."),
    _gauge("worker_versions", "Workers that are alive, by version of Fairshift.", "version"),
    _gauge("beat_leading", "1 while a celery-beat leads, else 0."),
    _gauge("beat_lag_seconds", "Time since the last pulse of the scheduler."),
    _gauge("tick_lag_seconds", "Time since the first due time that was not triggered."),
    _gauge("statistics_lag_seconds", "Time since the end of the last final minute."),
    _gauge("unpublished_runs", "Runs in the outbox, which Redis may not have."),
    _gauge("unpublished_seconds", "Age of the oldest of them."),
    _gauge("held_runs", "Runs that wait for a service window, or for their wave."),
    _gauge("rollouts", "Submissions in waves that have not ended, by state.", "state"),
    _gauge("dead_letters", "Failed runs that are stored."),
    _gauge("partitions_ahead", "Whole days after today that have a partition."),
    _gauge("database_bytes", "Size of the database."),
)
BY_NAME: Final = {family.name: family for family in FAMILIES}
