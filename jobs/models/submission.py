"""Submissions: many runs of one submit, in waves if asked; and idempotency keys."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import models
from django.db.models import Count
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.core.errors import OptionError
from jobs.core.states import ENDED, State
from jobs.models.owner import Owner
from jobs.models.recurring import Backfill
from jobs.models.token import ApiToken
from jobs.models.verbs import Actor, Cancelled, verbs

LONGEST_WAIT: Final = 366 * 86_400


@dataclass(frozen=True, slots=True)
class Progress:
    """How many runs of a submission are in each state."""

    counts: dict[State, int]
    is_growing: bool = False
    """A backfill still submits runs."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        return sum(count for state, count in self.counts.items() if state in ENDED)

    @property
    def is_done(self) -> bool:
        return not self.is_growing and self.ended == self.total

    def __getitem__(self, state: State | str) -> int:
        """Return how many runs are in this state; raise KeyError if there is no such state."""
        if state not in tuple(State):
            raise KeyError(f"{state!r} is no state; the states are {', '.join(State)}")
        return self.counts.get(State(state), 0)

    def __str__(self) -> str:
        counted = [f"{self[state]:,} {state}" for state in State if self[state]]
        return f"{', '.join(counted) or 'none'} of {self.total:,}"


class Submission(models.Model):
    """A bulk of runs of one owner and one task."""

    owner = models.ForeignKey(Owner, models.PROTECT, related_name="submissions")
    label = models.CharField(_("label"), max_length=200, blank=True)
    task = models.CharField(_("task"), max_length=255)
    queue = models.CharField(_("queue"), max_length=100)
    run_count = models.PositiveIntegerField(_("runs"))
    created_at = models.DateTimeField(_("submitted at"), db_default=Now())

    class Meta:
        verbose_name = _("submission")
        verbose_name_plural = _("submissions")
        ordering = ("-id",)
        permissions = [
            ("cancel_submission", _("Can cancel a submission")),
            ("approve_submission", _("Can approve a wave of a submission")),
        ]
        indexes = [models.Index(name="submission_of_owner", fields=("owner", "-id"))]

    def __str__(self) -> str:
        return self.label or f"{self.task} × {self.run_count}"

    page_progress: Progress | None = None
    """What a page has counted; the conditions of its actions read it."""

    @property
    def progress(self) -> Progress:
        """Count the runs by state, now."""
        # Before the count: a backfill ends in the transaction that adds its last runs.
        is_growing = Backfill.objects.filter(submission=self, done_at=None).exists()
        rows = self.runs.order_by().values_list("state").annotate(count=Count("*"))
        counts = {State(state): count for state, count in rows}
        return Progress(counts, is_growing=is_growing)

    def wait(self, *, timeout: float | None = None, poll: float = 0.2) -> Progress:
        """Block until every run has ended; raise TimeoutError after `timeout` seconds.

        Queries every `poll` seconds. Raises OptionError if one of the two is out of range.
        """
        _refuse_span("timeout", 0.0 if timeout is None else timeout)
        _refuse_span("poll", poll)
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (progress := self.progress).is_done:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(
                    f"{progress.total - progress.ended} of {progress.total} runs of submission "
                    f"{self.pk} have not ended after {timeout} seconds"
                )
            time.sleep(poll)
        return progress

    def cancel(self, *, actor: Actor = None, reason: str = "") -> Cancelled:
        """Cancel every run that has not ended; return how many were cancelled or asked to stop.

        The result is false if there was none. Repeating it is harmless.
        """
        return verbs().cancel_submission(self, actor=actor, reason=reason)


def _refuse_span(option: str, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= LONGEST_WAIT:
        raise OptionError(option, f"is a number of seconds from 0 to {LONGEST_WAIT}")


class RolloutState(models.TextChoices):
    ROLLING = "rolling", _("a wave runs")
    WAITING = "waiting", _("waits for the next wave")
    STOPPED = "stopped", _("stopped: too many runs of a wave have failed")
    PAUSED = "paused", _("paused by an operator")
    ENDED = "ended", _("all waves have ended")


class Rollout(models.Model):
    """The waves of a submission, and how far they are. Admission reads `state` and `released_to`.

    Ids of runs rise with their wave, so a wave is a range of ids. `waves` has a mapping for each:
    `size`, `first` and `last` (ids of runs), and of those that are released `released_at`,
    `released_by` ("" for the rollout itself), `ended_at` (ISO 8601) once its runs have ended, and
    `accepted_failed` and `accepted_ended`: failed and ended runs that an operator has accepted.
    `asked_at`: when an approval of this wave was asked for.
    """

    submission = models.OneToOneField(Submission, models.CASCADE, primary_key=True)
    owner = models.ForeignKey(Owner, models.PROTECT, related_name="+")
    state = models.CharField(
        _("state"), max_length=8, choices=RolloutState, default=RolloutState.ROLLING
    )
    waves = models.JSONField()
    # The newest wave that is released, from 1; its last run.
    wave = models.PositiveSmallIntegerField(_("wave"), default=1)
    released_to = models.UUIDField()
    # Released runs after this one are still to be made due; null: none.
    due_from = models.UUIDField(null=True)
    stop_at = models.CharField(_("stops at"), max_length=10, blank=True)
    between_seconds = models.PositiveIntegerField(_("seconds between waves"), null=True)
    needs_approval = models.BooleanField(_("needs approval"), default=False)
    # When the next wave is released, while it waits for its time.
    next_at = models.DateTimeField(_("next wave at"), null=True)
    deadline_seconds = models.FloatField(null=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    requested_by_token = models.ForeignKey(ApiToken, models.SET_NULL, null=True, related_name="+")
    # Why it is in its state: the failures at which it stopped, or an operator's reason.
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    changed_at = models.DateTimeField(_("changed at"), db_default=Now())
    # Events that webhooks and mails have not got yet (`jobs/rollouts/telling.py`); null: none.
    untold = models.JSONField(null=True)

    class Meta:
        verbose_name = _("rollout")
        verbose_name_plural = _("rollouts")
        indexes = [
            # Those that a round looks at.
            models.Index(
                name="rollout_open",
                fields=("submission",),
                condition=~models.Q(state="ended") | models.Q(due_from__isnull=False),
            ),
            models.Index(
                name="rollout_untold",
                fields=("submission",),
                condition=models.Q(untold__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.submission_id}: wave {self.wave}, {self.state}"


class IdempotencyKey(models.Model):
    """A caller's key and what it made. A unique index on runs could not span their partitions."""

    owner = models.ForeignKey(Owner, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.BinaryField(max_length=32)
    run_id = models.UUIDField(null=True)
    submission_id = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_once_per_owner")
        ]

    def __str__(self) -> str:
        return self.key
