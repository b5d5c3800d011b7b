"""Rollups: what ended in each minute, as counts and histograms."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from jobs.core.states import State

OUTCOMES = (State.SUCCEEDED, State.FAILED, State.RETRYING, State.CANCELLED, State.EXPIRED)
OUTCOME_CHOICES = [(state.value, state.value) for state in OUTCOMES]


class Rollup(models.Model):
    """One minute of one owner, task, outcome and error.

    It counts attempts by the state that their run had after them, and runs that ended without an
    attempt: cancelled, expired, or failed by an operator. `error_type` is empty unless an attempt
    failed. `jobs/system/rollups` writes the rows and reads them. An owner's rows stay when it is
    deleted, so there is no foreign key.

    A histogram is two arrays of one length: the numbers of its buckets, rising, and their counts.
    """

    pk = models.CompositePrimaryKey("minute", "owner_id", "task", "outcome", "error_type")
    minute = models.DateTimeField()
    owner_id = models.BigIntegerField()
    task = models.CharField(max_length=255)
    outcome = models.CharField(max_length=10, choices=OUTCOME_CHOICES)
    error_type = models.CharField(max_length=200)
    count = models.PositiveIntegerField()
    # From queued to started; attempts that did not start are in neither histogram.
    wait_seconds = models.FloatField()
    wait_buckets = ArrayField(models.SmallIntegerField())
    wait_counts = ArrayField(models.IntegerField())
    # From started to ended.
    worker_seconds = models.FloatField()
    run_buckets = ArrayField(models.SmallIntegerField())
    run_counts = ArrayField(models.IntegerField())

    class Meta:
        indexes = [models.Index(fields=["owner_id", "minute"], name="rollup_of_owner")]

    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M} {self.outcome}: {self.count}"


class RollupTotal(models.Model):
    """The sum of all rollups of one minute: what readers of all owners get.

    It is written with the rollups of its minute. Requests for some owners cannot read it.
    """

    minute = models.DateTimeField(primary_key=True)
    succeeded = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()
    retrying = models.PositiveIntegerField()
    cancelled = models.PositiveIntegerField()
    expired = models.PositiveIntegerField()
    worker_seconds = models.FloatField()
    wait_buckets = ArrayField(models.SmallIntegerField())
    wait_counts = ArrayField(models.IntegerField())
    run_buckets = ArrayField(models.SmallIntegerField())
    run_counts = ArrayField(models.IntegerField())

    def __str__(self) -> str:
        return f"{self.minute:%Y-%m-%d %H:%M}"


class RollupPosition(models.Model):
    """How far the rollups are. One row.

    Minutes before `final_until` are not counted again. Those from there to `counted_until` are
    counted, but a transaction that is still open may add to them.
    """

    final_until = models.DateTimeField()
    counted_until = models.DateTimeField()
    # Minutes before it become final when all transactions with lower ids have ended.
    boundary_at = models.DateTimeField(null=True)
    boundary_xid = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.final_until:%Y-%m-%d %H:%M}"
