"""What comes in from outside and is not jobs yet."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from jobs.models.owner import Owner


class InboxMark(models.Model):
    """How far one list of the inbox has been read: the SHA-256 of the last message that is done."""

    name = models.CharField(max_length=100, primary_key=True)
    digest = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return self.name


class JobImport(models.Model):
    """A file of jobs between its check and the word that it shall be imported."""

    owner = models.ForeignKey(Owner, models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=200, blank=True)
    content = models.BinaryField()
    # What the import would do: compressed JSON. None while it is being found out.
    report = models.BinaryField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("user",), name="jobimport_one_per_person"),
        ]

    def __str__(self) -> str:
        return self.name
