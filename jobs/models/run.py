"""Runs and their attempts: the row is the run. Both tables are partitioned by id, a day each.

Foreign keys have no constraint, which would cost a look-up for each row of a bulk: the
application protects the rows that they reference.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.core.crypto import (
    ERROR,
    Damaged,
    Place,
    UnknownKey,
    attempt_field,
    read_body,
    read_result,
    read_texts,
)
from jobs.core.phrases import phrase
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models.owner import Owner, slug_of
from jobs.models.submission import Submission
from jobs.models.target import Target
from jobs.models.task_progress import TaskProgress
from jobs.models.verbs import Actor, verbs
from jobs.models.worker import Worker

STATE_CHOICES = [(state.value, state.value) for state in State]


class RunQuerySet(models.QuerySet["Run"]):
    def failed(self) -> RunQuerySet:
        """Dead letters: runs that have failed."""
        return self.filter(state=State.FAILED)

    def active(self) -> RunQuerySet:
        """Runs that a worker has."""
        return self.filter(state__in=ACTIVE)

    def open(self) -> RunQuerySet:
        """Runs that have not ended."""
        return self.filter(state__in=set(State) - ENDED)

    def labelled(self, **labels: str) -> RunQuerySet:
        """Runs that have all of these labels."""
        # The condition of the partial index: PostgreSQL cannot derive it.
        return self.filter(labels__contains=labels).exclude(labels={})


def _loose_key(to: type[models.Model] | str, related_name: str, label: Any) -> Any:
    """A foreign key without constraint and without an index of its own."""
    return models.ForeignKey(
        to,
        models.DO_NOTHING,
        null=to is not Owner,
        related_name=related_name,
        db_constraint=False,
        db_index=False,
        verbose_name=label,
    )


class WindowPolicy(models.TextChoices):
    OBEY = "", _("obeys the calendars that apply")
    REQUIRED = "required", _("starts only where a calendar applies")
    OVERRIDDEN = "overridden", _("starts outside its windows: overridden")
    SHARED = "shared", _("obeys shared calendars only: its owner's are overridden")


class Run(models.Model):
    """One execution of a task, from submit to its end, with all its attempts."""

    id = models.UUIDField(primary_key=True)
    owner = _loose_key(Owner, "runs", _("owner"))
    job = _loose_key("jobs.Job", "runs", _("job"))
    submission = _loose_key(Submission, "runs", _("submission"))
    target = _loose_key(Target, "runs", _("target"))
    worker = _loose_key(Worker, "runs", _("worker"))
    task = models.CharField(_("task"), max_length=255)
    queue = models.CharField(_("queue"), max_length=100)
    state = models.CharField(_("state"), max_length=10, choices=STATE_CHOICES)
    priority = models.PositiveSmallIntegerField(_("priority"), db_default=5)

    payload = models.BinaryField(_("arguments"))
    payload_key = models.SmallIntegerField(db_default=0)
    result = models.BinaryField(_("result"), null=True)
    result_key = models.SmallIntegerField(db_default=0)
    labels = models.JSONField(_("labels"), db_default={})

    # +1 with each admission; only the worker with the newest token may write an outcome.
    token = models.PositiveIntegerField(_("token"), db_default=0)
    attempt_count = models.PositiveSmallIntegerField(_("attempts"), db_default=0)
    # Attempts before an operator's last retry; `attempt_count` counts those since.
    earlier_attempts = models.IntegerField(db_default=0, editable=False)
    max_attempts = models.PositiveSmallIntegerField(_("most attempts"))
    policy = models.JSONField(_("policy"), db_default={})
    options = models.JSONField(_("options"), db_default={})
    # The owner's slug (100), a colon and the caller's key (200).
    lock_key = models.CharField(_("lock key"), max_length=301, db_default="")
    blocked_by = models.CharField(_("blocked by"), max_length=8, db_default="")

    created_at = models.DateTimeField(_("submitted at"), db_default=Now())
    # The caller's time; a retry does not change it.
    due_at = models.DateTimeField(_("due at"), null=True)
    # When promotion queues a delayed run.
    next_at = models.DateTimeField(_("next at"), null=True)
    deadline_at = models.DateTimeField(_("start before"), null=True)
    queued_at = models.DateTimeField(_("queued at"), null=True)
    # When the hint of a queued run counts as lost, and is published again.
    hint_check_at = models.DateTimeField(_("hint check at"), null=True)
    # The last moment of a start in its opening, for a queued run with calendars.
    not_after = models.DateTimeField(_("not after"), null=True)
    # When its calendars, as they were at admission, end its newest attempt; null: never.
    closes_at = models.DateTimeField(_("closes at"), null=True)
    # When its worker is asked to stop it, for an active run whose window has changed.
    stop_at = models.DateTimeField(_("stop at"), null=True)
    window_policy = models.CharField(
        _("windows"), max_length=10, choices=WindowPolicy, db_default=WindowPolicy.OBEY
    )
    admitted_at = models.DateTimeField(_("admitted at"), null=True)
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)

    error_type = models.CharField(_("error"), max_length=200, db_default="")
    # As plain text, or empty and encrypted in `error_data`: read `error_text`.
    error_message = models.TextField(_("error message"), db_default="")
    error_data = models.BinaryField(null=True)
    error_key = models.SmallIntegerField(db_default=0, editable=False)
    # [[state, seconds since 1970, cause], ...]: written by the statement that moves the run.
    history = models.JSONField(_("history"))
    progress = models.JSONField(null=True)  # see `jobs/catalog/attempt_store.py`
    checkpoint = models.BinaryField(null=True)
    checkpoint_key = models.SmallIntegerField(db_default=0, editable=False)
    # The newest question where it is, and the last answers: see `jobs/runs/looks.py`.
    look = models.JSONField(null=True)
    looks = models.BinaryField(null=True)
    looks_key = models.SmallIntegerField(db_default=0, editable=False)

    objects = RunQuerySet.as_manager()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ("-id",)
        permissions = [
            ("cancel_run", _("Can cancel a run")),
            ("retry_run", _("Can retry a run")),
            ("move_run", _("Can move a run to another task, or fail it unstarted")),
            ("view_arguments", _("Can see the arguments, the result and the error texts of a run")),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    @property
    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword arguments with which the task is called."""
        return read_body(self.payload, key=self.payload_key, place=self.place)

    @property
    def result_value(self) -> Any:
        """What the task returned; None before it succeeded."""
        if self.result is None:
            return None
        return read_result(self.result, key=self.result_key, place=self.place)

    @property
    def error_text(self) -> str:
        """The message of the last error; if it cannot be read, a phrase that says why."""
        if self.error_data is None:
            return self.error_message
        return _texts(self.error_data, self.error_key, ERROR, self.place)[0]

    @property
    def place(self) -> Place:
        """What the encrypted fields are bound to."""
        owner = self._state.fields_cache.get("owner")
        slug = owner.slug if owner and owner.slug else slug_of(self.owner_id)
        return Place(slug, self.id, self.job_id)

    @property
    def task_progress(self) -> TaskProgress | None:
        """How far the newest attempt is, if its task has said so."""
        return TaskProgress.of(self.progress, token=self.token)

    @property
    def moves(self) -> list[tuple[State, datetime, str]]:
        """The history as (state, moment, cause), oldest first."""
        return [
            (State(state), datetime.fromtimestamp(at, UTC), cause)
            for state, at, cause in self.history
        ]

    @property
    def attempt_number(self) -> int:
        """The number of the newest attempt, counted across operators' retries."""
        return self.earlier_attempts + self.attempt_count

    @property
    def last_attempt_number(self) -> int:
        """The highest number that an attempt of this set may have."""
        return self.earlier_attempts + self.max_attempts

    @property
    def attempts(self) -> models.QuerySet[Attempt]:
        """The ended attempts, first to last."""
        return Attempt.objects.filter(run_id=self.id).order_by("token")

    def why_waiting(self) -> str:
        """Say in one sentence why the run has not started; empty once it has."""
        return verbs().why_waiting(self)

    def cancel(self, *, actor: Actor = None, reason: str = "") -> bool:
        """Cancel the run; say whether it was moved. Repeating it is harmless.

        The state becomes `cancelled`, or `cancelling` if a worker is asked to stop it.
        """
        moved = verbs().cancel_runs([self.id], actor=actor, reason=reason)
        self.refresh_from_db()
        return bool(moved)

    def retry(self, *, actor: Actor = None, reason: str = "") -> None:
        """Queue an ended run again with fresh attempts; raise StateConflict if it may not."""
        verbs().reopen_runs([self.id], actor=actor, reason=reason)
        self.refresh_from_db()


class AttemptOutcome(models.TextChoices):
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    RETRYING = "retrying", _("failed, tried again")
    WORKER_LOST = "worker lost", _("worker lost")
    CHILD_LOST = "child lost", _("worker process lost")
    TIME_LIMIT = "time limit", _("time limit")
    CANCELLED = "cancelled", _("cancelled")
    GIVEN_BACK = "given back", _("given back unstarted")
    SNOOZED = "snoozed", _("snoozed by its task")


class Attempt(models.Model):
    """One ended attempt of a run, under one token. The current attempt is in the run's row.

    `number` counts from 1, across operators' retries. One that was given back is not counted.
    """

    pk = models.CompositePrimaryKey("run_id", "token")
    run_id = models.UUIDField()
    token = models.PositiveIntegerField(_("token"))
    number = models.PositiveSmallIntegerField(_("attempt"))
    worker_id = models.UUIDField(_("worker"), null=True)
    outcome = models.CharField(_("outcome"), max_length=12, choices=AttemptOutcome)
    admitted_at = models.DateTimeField(_("admitted at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"))
    error_type = models.CharField(_("error"), max_length=200, db_default="")
    error_message = models.TextField(_("error message"), db_default="")
    traceback = models.TextField(_("traceback"), db_default="")
    # Both as plain text, or empty and encrypted: read `texts`.
    error_data = models.BinaryField(null=True)
    error_key = models.SmallIntegerField(db_default=0, editable=False)
    # For the rollups: when the run was queued for this attempt, the state of the run after it, and
    # when the row was written. Empty for attempts that are older than these columns.
    queued_at = models.DateTimeField(null=True, editable=False)
    run_state = models.CharField(
        max_length=10, choices=STATE_CHOICES, db_default="", editable=False
    )
    recorded_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.outcome}"

    def texts(self, run: Run) -> tuple[str, str]:
        """Return the error message and the traceback; `run` is the attempt's."""
        if self.error_data is None:
            return self.error_message, self.traceback
        field = attempt_field(self.token)
        message, *rest = _texts(self.error_data, self.error_key, field, run.place)
        return message, "".join(rest)


def _texts(data: bytes | memoryview, key: int, field: str, place: Place) -> list[str]:
    """Return stored texts; if they cannot be read, a phrase that says why."""
    try:
        return read_texts(data, key=key, field=field, place=place)
    except (UnknownKey, Damaged) as error:
        return [phrase("cannot be read (%(reason)s)", reason=str(error))]
