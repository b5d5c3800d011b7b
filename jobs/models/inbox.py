"""Inputs that are not jobs yet: the position in the inbox, and files to be imported."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from jobs.models.owner import Owner


class InboxMark(models.Model):
    """The position in one list of the inbox: the SHA-256 of the last message that is done."""

    name = models.CharField(max_length=100, primary_key=True)
    digest = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return self.name


class JobImport(models.Model):
    """A file of jobs that is checked, and waits for a user to confirm the import."""

    owner = models.ForeignKey(Owner, models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=200, blank=True)
    content = models.BinaryField()
    # What the import would do: compressed JSON. None during the check.
    report = models.BinaryField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("user",), name="jobimport_one_per_person"),
        ]

    def __str__(self) -> str:
        return self.name
