"""Worker nodes and their heartbeats, which decide whether a worker is alive."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.core.conf import setting
from jobs.core.crypto import CLEAR
from jobs.core.phrases import phrase

REDIS_PATIENCE: Final = timedelta(seconds=30)
"""How long Redis may owe a worker an answer. It answers a healthy one about every 5 s."""
_LACKS_REDIS: Final = models.Q(redis_answered_at__lt=models.F("heartbeat_at") - REDIS_PATIENCE)


class WorkerQuerySet(models.QuerySet["Worker"]):
    def beating(self) -> WorkerQuerySet:
        """Workers that have not stopped and whose heartbeat is younger than the lease."""
        lease = timedelta(seconds=setting("LEASE_SECONDS"))
        return self.filter(stopped_at__isnull=True, heartbeat_at__gt=Now() - lease)

    def alive(self) -> WorkerQuerySet:
        """Beating workers that take runs: with a process, a queue, and answers of Redis."""
        # Not `exclude`: the time is null in rows of an old version, which are alive.
        has_redis = models.Q(redis_answered_at=None) | ~_LACKS_REDIS
        return self.beating().filter(has_redis).exclude(queues=[])

    def idle(self) -> WorkerQuerySet:
        """Beating workers that take no runs, and finish those that they have."""
        return self.beating().filter(models.Q(queues=[]) | _LACKS_REDIS)

    def without_redis(self) -> WorkerQuerySet:
        """Beating workers that would take runs, and cannot use Redis."""
        return self.beating().filter(_LACKS_REDIS).exclude(queues=[])


class Worker(models.Model):
    """One boot of one worker node; a restarted worker is a new row."""

    id = models.UUIDField(primary_key=True)
    hostname = models.CharField(_("node name"), max_length=255)
    pid = models.PositiveIntegerField(_("process id"))
    pool = models.CharField(_("pool"), max_length=32)
    slots = models.PositiveIntegerField(_("slots"))
    queues = models.JSONField(_("queues"), default=list)
    # Null: written by an old version, which did not report its tasks.
    tasks = models.JSONField(_("tasks"), null=True)
    # The ids of its encryption keys. Null: written by an old version, which has no keys.
    keys = ArrayField(models.SmallIntegerField(), null=True, editable=False)
    version = models.CharField(_("version"), max_length=32)
    started_at = models.DateTimeField(_("started at"), db_default=Now())
    heartbeat_at = models.DateTimeField(_("last heartbeat"), db_default=Now())
    # Its machine's clock minus PostgreSQL's. Null: not reported yet, or never, by an old version.
    clock_ahead_seconds = models.FloatField(_("clock ahead (s)"), null=True)
    # Null: written by an old version, which does not report it.
    redis_answered_at = models.DateTimeField(_("last answer of Redis"), null=True)
    # The time of the request to take no more runs. The worker obeys it at its next heartbeat.
    draining_since = models.DateTimeField(_("draining since"), null=True)
    stopped_at = models.DateTimeField(_("stopped at"), null=True)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ("-started_at",)
        indexes = [
            models.Index(
                name="worker_beating",
                fields=("heartbeat_at",),
                condition=models.Q(stopped_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return self.hostname

    def why_idle(self) -> str:
        """Say why a beating worker takes no runs; empty if it does."""
        if self.queues:
            return phrase("cannot use Redis") if self.lacks_redis else ""
        if self.draining_since is not None:
            return phrase("is draining")
        return phrase("has no process") if self.slots == 0 else phrase("consumes no queue")

    @property
    def lacks_redis(self) -> bool:
        """Whether Redis had not answered it for REDIS_PATIENCE at its last heartbeat."""
        answered_at = self.redis_answered_at
        return answered_at is not None and answered_at < self.heartbeat_at - REDIS_PATIENCE

    def has_key(self, key: int) -> bool:
        """Say whether the worker can decrypt values of this key; key 0 means not encrypted."""
        return key == CLEAR or key in (self.keys or ())

    def knows(self, task: str) -> bool:
        """Say whether the worker has this task, or has not reported its tasks."""
        return self.tasks is None or task in self.tasks
