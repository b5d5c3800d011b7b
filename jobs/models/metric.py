"""Metric totals: counters for Prometheus, which only ever rise, and the owners that they name."""

from __future__ import annotations

from django.db import models


class MetricTotal(models.Model):
    """One counter of an owner and a queue since the first minute that was counted.

    `owner_id` is OTHERS for owners without a name in metrics, and ALL for the sum of all; `queue`
    is empty for queues without a name, and in sums. `name` is an outcome, or one of those in
    `jobs/system/rollups/metric_totals.py`, which writes and reads the rows.
    """

    ALL = -1
    OTHERS = 0

    owner_id = models.BigIntegerField()
    queue = models.CharField(max_length=100)
    name = models.CharField(max_length=20)
    value = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("owner_id", "queue", "name"), name="metric_total_once")
        ]

    def __str__(self) -> str:
        return f"{self.owner_id} {self.queue} {self.name}: {self.value:g}"


class MetricOwner(models.Model):
    """An owner that metrics name: one of those with most load lately.

    `load` is runs and worker seconds, of which a minute keeps a part for the next one.
    """

    owner_id = models.BigIntegerField(primary_key=True)
    load = models.FloatField()

    def __str__(self) -> str:
        return f"{self.owner_id}: {self.load:g}"
