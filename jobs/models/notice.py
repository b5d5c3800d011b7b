"""What webhooks and mails have in common: the events that one asks for; and alarms of jobs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import no_nul
from jobs.models.owner import Owner
from jobs.models.token import ApiToken


class EventType(models.TextChoices):
    """What a webhook or a mail tells of."""

    RUN_ENDED = "run.ended", _("a run ended")
    SUBMISSION_ENDED = "submission.ended", _("all runs of a submission ended")
    JOB_FAILING = "job.failing", _("a job began to fail")
    JOB_RECOVERED = "job.recovered", _("a job no longer fails")
    JOB_LATE = "job.late", _("a job is late")
    JOB_ON_TIME = "job.on_time", _("a job is no longer late")


TEST_EVENT = "webhook.test"
"""The type of the delivery that an operator asks for to try an endpoint."""


class Interest(models.Model):
    """The events that one endpoint or mail subscription asks for. Empty filters pass everything."""

    owner = models.ForeignKey(
        Owner,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("owner"),
        help_text=_("Empty: events of all owners of the installation."),
    )
    name = models.CharField(_("name"), max_length=100, validators=[no_nul])
    events = ArrayField(
        models.CharField(max_length=32, choices=EventType), verbose_name=_("events")
    )
    tasks = ArrayField(
        models.CharField(max_length=255, validators=[no_nul]),
        default=list,
        blank=True,
        verbose_name=_("tasks"),
        help_text=_("Names with * for any text, separated by commas. Empty: all tasks."),
    )
    job = models.ForeignKey(
        "jobs.Job",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("job"),
        help_text=_("Only events of this job. Empty: of all."),
    )
    states = ArrayField(
        models.CharField(max_length=10),
        default=list,
        blank=True,
        verbose_name=_("states"),
        help_text=_("Only runs that end in these states. Empty: all ends."),
    )
    is_active = models.BooleanField(_("active"), default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("made by"),
    )
    created_by_token = models.ForeignKey(
        ApiToken,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("made by the token"),
    )
    created_at = models.DateTimeField(_("made at"), db_default=Now(), editable=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class JobAlarm(models.Model):
    """A job that fails, or is late, since a moment: the change was told, its end not yet."""

    job = models.ForeignKey("jobs.Job", models.CASCADE, related_name="+")
    kind = models.CharField(
        max_length=16, choices=[("failing", "failing"), ("late", "late")], editable=False
    )
    since_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="job_alarm_once", fields=("job", "kind"))]

    def __str__(self) -> str:
        return f"{self.job_id} is {self.kind}"
