"""Ends of runs for listeners, and the calls of hooks that they lead to.

No row has a foreign key: an end is written in the statement that ends the run, and stays until its
listener has taken it, also when the owner is deleted meanwhile.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from jobs.core.states import ENDED

END_CHOICES = [(state.value, state.value) for state in sorted(ENDED)]


class EndListener(models.Model):
    """A listener: ends of this owner's runs are recorded for `name`. Owner 0: of all owners."""

    ALL = 0

    pk = models.CompositePrimaryKey("name", "owner_id")
    name = models.CharField(max_length=20)
    owner_id = models.BigIntegerField()
    # When the listener last took ends; see `jobs/system/ends.py`.
    taken_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.name} of owner {self.owner_id or 'all'}"


class End(models.Model):
    """The end of a run that one listener has not taken yet."""

    listener = models.CharField(max_length=20)
    run_id = models.UUIDField()
    owner_id = models.BigIntegerField()
    submission_id = models.BigIntegerField(null=True)
    state = models.CharField(max_length=10, choices=END_CHOICES)
    ended_at = models.DateTimeField()
    recorded_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["listener", "id"], name="end_of_listener")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.state}"


class EndMark(models.Model):
    """Up to when a listener knows a submission's end.

    With `waits`, all of its runs have ended, and a backfill may still add others.
    """

    pk = models.CompositePrimaryKey("listener", "submission_id")
    listener = models.CharField(max_length=20)
    submission_id = models.BigIntegerField()
    checked_at = models.DateTimeField()
    waits = models.BooleanField()

    class Meta:
        indexes = [
            models.Index(
                name="end_mark_waits", fields=("listener",), condition=models.Q(waits=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.listener}, submission {self.submission_id}"


class HookCall(models.Model):
    """A hook that is to be called with one end. The row is deleted when the hook has returned."""

    hook = models.CharField(max_length=255)
    run_id = models.UUIDField(null=True)
    submission_id = models.BigIntegerField(null=True)
    facts = models.JSONField()
    failures = models.PositiveSmallIntegerField(db_default=0)
    next_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["hook", "next_at"], name="hook_call_due")]

    def __str__(self) -> str:
        return f"{self.hook} for {self.run_id or self.submission_id}"
