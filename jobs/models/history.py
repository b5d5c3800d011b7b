"""What retention has removed, and how its last round went."""

from __future__ import annotations

from django.db import models


class HistoryPart(models.Model):
    """Runs of one day, by their ids, that were removed together, and the file that has them.

    A day has several parts if some of its runs stayed longer than others.
    """

    day = models.DateField()
    number = models.PositiveIntegerField()
    run_count = models.PositiveBigIntegerField()
    # Null: not counted, as there was no archive.
    attempt_count = models.PositiveBigIntegerField(null=True)
    # Below the archive's folder; empty if there was no archive.
    file = models.CharField(max_length=100, blank=True)
    size_bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    removed_at = models.DateTimeField()

    class Meta:
        ordering = ("day", "number")
        constraints = [
            models.UniqueConstraint(fields=("day", "number"), name="history_part_once"),
        ]

    def __str__(self) -> str:
        return f"{self.day} part {self.number}"


class HistoryRound(models.Model):
    """The last round of retention. One row."""

    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # Why rows that should have been removed are still there; empty: nothing prevented it.
    problem = models.TextField(blank=True)
    problem_since = models.DateTimeField(null=True)
    # Partitions in which nothing more leaves today, and a digest of the rules by which.
    looked_at = models.JSONField(default=list)
    looked_by = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return self.problem or f"{self.began_at:%Y-%m-%d %H:%M}"
