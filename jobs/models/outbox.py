"""The transactional outbox: hints that are committed and perhaps not yet in the broker."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from fleet import counted


class Outbox(models.Model):
    """One batch of runs whose hints are to be published."""

    run_ids = ArrayField(models.UUIDField())
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return counted(len(self.run_ids), "hint")
