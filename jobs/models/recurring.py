"""State of the recurring engine: ticks, its position, missed due times, backfills, beat's lease."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.owner import Owner


class Tick(models.Model):
    """A span of slots that a system worker is to trigger.

    A slot is half a second of PostgreSQL's clock: `slot = floor(2 * epoch seconds)`. Its minute is
    `slot // 120`, its shard `slot % 120`. A held tick is for one job, the first after `after_job`,
    whose row another transaction had locked.
    """

    class Kind(models.TextChoices):
        DUE = "due", _("due")
        CATCH_UP = "catch_up", _("catch up")
        HELD = "held", _("held")

    first_slot = models.BigIntegerField()
    end_slot = models.BigIntegerField(help_text=_("The first slot after it."))
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.DUE)
    after_job = models.BigIntegerField(default=0, help_text=_("Jobs up to this id are done."))
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="tick_open", condition=models.Q(done_at__isnull=True)),
            models.Index(fields=["end_slot"], name="tick_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.first_slot}..{self.end_slot}"


class Cursor(models.Model):
    """The next slot of the pulse, and the time of the last pulse. One row."""

    slot = models.BigIntegerField(help_text=_("All slots before it are in ticks."))
    beat_at = models.DateTimeField(db_default=Now(), help_text=_("When the last pulse was."))

    class Meta:
        # In the admin, this row shows whether the engine runs.
        verbose_name = _("scheduler")
        verbose_name_plural = _("scheduler")

    def __str__(self) -> str:
        return str(self.slot)


class MissReason(models.TextChoices):
    OUTAGE = "outage", _("no scheduler or worker was running")
    CAP = "cap", _("more than the job catches up with")
    DEADLINE = "deadline", _("too late to be caught up")
    OVERLAP = "overlap", _("the run before it had not ended")
    PAUSED = "paused", _("paused")
    WINDOW = "window", _("outside its windows")


class Missed(models.Model):
    """Due times of a job that were not run: one record a span, with count and reason."""

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="missed")
    owner = models.ForeignKey(Owner, models.CASCADE, related_name="+")
    first_at = models.DateTimeField(_("first due"))
    last_at = models.DateTimeField(_("last due"))
    count = models.PositiveIntegerField(_("due times"))
    reason = models.CharField(_("reason"), max_length=8, choices=MissReason)
    created_at = models.DateTimeField(_("recorded"), db_default=Now())

    class Meta:
        verbose_name = _("missed span")
        verbose_name_plural = _("missed spans")
        constraints = [
            models.UniqueConstraint(fields=("job", "first_at", "reason"), name="missed_span_once")
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="missed_of_owner"),
            models.Index(fields=["created_at"], name="missed_recorded"),
        ]

    def __str__(self) -> str:
        return f"{self.count} × {self.reason}"


class BackfillState(models.TextChoices):
    MAKING = "making", _("being made")
    STOPPED = "stopped", _("stopped")
    MADE = "made", _("made")


class Backfill(models.Model):
    """A range of past due times that an operator wants to be run."""

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="backfills")
    start_at = models.DateTimeField(_("from"))
    end_at = models.DateTimeField(_("until"), help_text=_("Not included."))
    count = models.PositiveIntegerField(_("due times"))
    made = models.PositiveIntegerField(_("submitted"), default=0)
    next_at = models.DateTimeField(null=True, help_text=_("All before it are submitted."))
    submission = models.ForeignKey("jobs.Submission", models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("backfill")
        verbose_name_plural = _("backfills")

    def __str__(self) -> str:
        return f"{self.job} {self.start_at:%Y-%m-%d %H:%M}"

    @property
    def state(self) -> BackfillState:
        """Whether its runs are still being made, were stopped, or are all made."""
        if self.done_at is None:
            return BackfillState.MAKING
        return BackfillState.STOPPED if self.made < self.count else BackfillState.MADE


class Leader(models.Model):
    """A lease: `holder` leads until `until`, by PostgreSQL's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    holder = models.CharField(max_length=200)
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField()
    # The clock of the holder's machine minus PostgreSQL's. Null: not compared yet.
    clock_ahead_seconds = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"

    @property
    def host(self) -> str:
        """The name of the holder's machine."""
        return self.holder.partition(":")[0]


class SentEntry(models.Model):
    """The last send of one PeriodicTask by the leading beat: its due time and task id."""

    name = models.CharField(max_length=255, primary_key=True)
    due_at = models.DateTimeField()
    task_id = models.CharField(max_length=64)
    sent_at = models.DateTimeField(null=True, help_text=_("Empty: the publish is not known."))

    def __str__(self) -> str:
        return self.name
