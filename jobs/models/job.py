"""Jobs: tasks with arguments, a schedule and policies."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.core.crypto import Place
from jobs.core.sql import now
from jobs.models.fields import (
    ATTEMPT_LIMITS,
    PRIORITY_LIMITS,
    SECONDS_LIMITS,
    no_nul,
    one_line,
    validate_zone,
)
from jobs.models.owner import Owner, slug_of
from jobs.models.target import Target
from jobs.models.verbs import Actor, verbs
from jobs.schedules import next_times
from jobs.schedules.spans import schedule_of

if TYPE_CHECKING:
    from jobs.models.recurring import Backfill
    from jobs.models.run import Run


class ScheduleKind(models.TextChoices):
    MANUAL = "manual", _("by hand only")
    ONCE = "once", _("once, at a time")
    INTERVAL = "interval", _("every N minutes")
    SECONDS = "seconds", _("every N seconds")
    CRON = "cron", _("cron expression")


class MisfirePolicy(models.TextChoices):
    SKIP = "skip", _("skip what was missed")
    ONCE = "once", _("run once for all that was missed")
    ALL = "all", _("run all that was missed")


class OverlapPolicy(models.TextChoices):
    ALLOW = "allow", _("runs may overlap")
    SKIP = "skip", _("skip while a run is open")
    QUEUE = "queue", _("queue one run")
    CANCEL = "cancel", _("cancel the run before")


class HistoryPolicy(models.TextChoices):
    FULL = "full", _("full: a row for each run")
    NONE = "none", _("none: nothing is written")


class Job(models.Model):
    """A task with its arguments, a schedule and policies, of one owner.

    `key` is the caller's own name for it. An empty policy means the task's, then the setting's.
    """

    # The unique index of owner and key finds an owner's jobs, too. Beside a second index of owners,
    # PostgreSQL would take that one for a key, and read all jobs of the owner.
    owner = models.ForeignKey(Owner, models.PROTECT, related_name="jobs", db_index=False)
    key = models.CharField(
        _("key"),
        max_length=200,
        validators=[one_line],
        help_text=_("The caller's own id of the job."),
    )
    name = models.CharField(_("name"), max_length=200, blank=True, validators=[one_line])
    task = models.CharField(_("task"), max_length=255)
    queue = models.CharField(_("queue"), max_length=100, blank=True)
    payload = models.BinaryField(_("arguments"))
    payload_key = models.SmallIntegerField(_("key of the arguments"), default=0)
    target = models.ForeignKey(
        Target, models.PROTECT, null=True, blank=True, related_name="jobs", verbose_name=_("target")
    )
    labels = models.JSONField(_("labels"), default=dict, blank=True)

    schedule = models.CharField(
        _("schedule"), max_length=16, choices=ScheduleKind, default=ScheduleKind.MANUAL
    )
    interval_minutes = models.PositiveIntegerField(
        _("interval in minutes"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    interval_seconds = models.PositiveIntegerField(
        _("interval in seconds"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    cron = models.CharField(_("cron expression"), max_length=200, blank=True)
    once_at = models.DateTimeField(_("once at"), null=True, blank=True)
    zone = models.CharField(_("time zone"), max_length=64, blank=True, validators=[validate_zone])
    start_at = models.DateTimeField(_("not before"), null=True, blank=True)
    end_at = models.DateTimeField(_("not after"), null=True, blank=True)
    smooth = models.BooleanField(_("smooth"), default=False)
    shard = models.PositiveSmallIntegerField(_("shard"), null=True, editable=False)
    phase = models.PositiveIntegerField(_("phase"), null=True, editable=False)

    misfire = models.CharField(
        _("when missed"), max_length=8, choices=MisfirePolicy, default=MisfirePolicy.ONCE
    )
    misfire_cap = models.PositiveIntegerField(
        _("catch up with at most"), default=100, validators=[MinValueValidator(1)]
    )
    misfire_deadline_seconds = models.FloatField(
        _("catch up within seconds"), null=True, blank=True, validators=SECONDS_LIMITS
    )
    overlap = models.CharField(
        _("overlap"), max_length=8, choices=OverlapPolicy, default=OverlapPolicy.ALLOW
    )

    priority = models.PositiveSmallIntegerField(
        _("priority"), null=True, blank=True, validators=PRIORITY_LIMITS
    )
    max_attempts = models.PositiveSmallIntegerField(
        _("most attempts"), null=True, blank=True, validators=ATTEMPT_LIMITS
    )
    backoff_seconds = models.FloatField(
        _("back-off in seconds"), null=True, blank=True, validators=SECONDS_LIMITS
    )
    backoff_cap_seconds = models.FloatField(
        _("longest back-off in seconds"), null=True, blank=True, validators=SECONDS_LIMITS
    )
    retry_on = ArrayField(
        models.CharField(max_length=200), verbose_name=_("retry on"), default=list, blank=True
    )
    give_up_on = ArrayField(
        models.CharField(max_length=200), verbose_name=_("give up on"), default=list, blank=True
    )
    soft_time_limit_seconds = models.FloatField(
        _("soft time limit in seconds"), null=True, blank=True, validators=SECONDS_LIMITS
    )
    time_limit_seconds = models.FloatField(
        _("time limit in seconds"), null=True, blank=True, validators=SECONDS_LIMITS
    )
    deadline_seconds = models.FloatField(
        _("start within seconds"), null=True, blank=True, validators=SECONDS_LIMITS
    )
    lock_key = models.CharField(
        _("lock key"),
        max_length=200,
        blank=True,
        validators=[no_nul],
        help_text=_("Runs of the owner with the same key do not overlap."),
    )
    history_policy = models.CharField(
        _("history"), max_length=8, choices=HistoryPolicy, default=HistoryPolicy.FULL
    )
    effective_from = models.DateTimeField(_("effective from"), db_default=Now(), editable=False)
    enabled = models.BooleanField(_("enabled"), default=True)
    paused_until = models.DateTimeField(_("paused until"), null=True, blank=True)
    # A trigger sets it; null again when the due times in the pause are recorded as missed.
    paused_from = models.DateTimeField(_("paused from"), null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    changed_at = models.DateTimeField(_("changed at"), auto_now=True)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        ordering = ("owner", "key")
        permissions = [
            ("run_job", _("Can run a job now")),
            ("pause_job", _("Can pause and resume a job")),
        ]
        constraints = [
            models.UniqueConstraint(fields=("owner", "key"), name="job_key_once_per_owner"),
            models.CheckConstraint(
                name="job_priority_0_to_9",
                condition=models.Q(priority__isnull=True) | models.Q(priority__range=(0, 9)),
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.key

    @property
    def lock_of_runs(self) -> str:
        """The lock key of its runs, without the owner's slug; empty only if they may overlap."""
        if self.lock_key or self.overlap == OverlapPolicy.ALLOW:
            return self.lock_key
        return f"job:{self.pk}"

    @property
    def place(self) -> Place:
        """What its encrypted arguments are bound to."""
        owner = self._state.fields_cache.get("owner")
        slug = owner.slug if owner and owner.slug else slug_of(self.owner_id)
        return Place(slug, job=self.pk)

    def run_now(self) -> Run:
        """Submit one run of this job now and return it; the owner's limits apply."""
        return verbs().run_job(self)

    def backfill(
        self, start: datetime, end: datetime, *, actor: Actor = None, reason: str = ""
    ) -> Backfill:
        """Run the past due times from `start` until before `end`; return the backfill."""
        return verbs().backfill(self, start, end, actor=actor, reason=reason)

    def next_times(self, count: int = 10) -> list[datetime]:
        """Return at most `count` next due times, in UTC, by the schedule in the database.

        None are in a pause; a disabled job has none. Raises ScheduleError for a broken schedule.
        """
        facts = Job.objects.values().get(pk=self.pk)
        if not facts["enabled"]:
            return []
        after = max(now(), facts["paused_until"] or facts["effective_from"])
        return next_times(schedule_of(facts), after=after, count=count)
