"""Events that webhooks and mails tell of, who asks for them, mails, and alarms of jobs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import author_key, no_nul, one_line
from jobs.models.owner import Owner
from jobs.models.token import ApiToken


class EventType(models.TextChoices):
    """What a webhook or a mail tells of."""

    RUN_ENDED = "run.ended", _("a run ended")
    SUBMISSION_ENDED = "submission.ended", _("all runs of a submission ended")
    WAVE_ENDED = "wave.ended", _("all runs of a wave ended")
    ROLLOUT_STOPPED = "rollout.stopped", _("a rollout stopped: too many failures")
    ROLLOUT_WAITS = "rollout.waits", _("the next wave of a rollout needs an approval")
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
    name = models.CharField(_("name"), max_length=100, validators=[one_line])
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
    disabled_at = models.DateTimeField(_("disabled at"), null=True, editable=False)
    disabled_reason = models.CharField(
        _("reason"), max_length=500, blank=True, db_default="", editable=False
    )
    created_by = author_key(settings.AUTH_USER_MODEL, _("made by"))
    created_by_token = author_key(ApiToken, _("made by the token"))
    # Whether a user or a token made it: it stops with them. Code leaves no maker.
    has_maker = models.BooleanField(default=False, db_default=False, editable=False)
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


class MailSubscription(Interest):
    """Addresses that get plain text mails about the events that they ask for."""

    addresses = ArrayField(
        models.EmailField(), verbose_name=_("addresses"), help_text=_("Separated by commas.")
    )
    language = models.CharField(
        _("language"), max_length=16, default="en", help_text=_("A code, such as en or de.")
    )

    class Meta:
        verbose_name = _("mail subscription")
        verbose_name_plural = _("mail subscriptions")
        ordering = ("-id",)


class MailDigest(models.Model):
    """What one subscription's next mail about one job (or task) and one change will say.

    The first event is mailed at once. Others within MAIL_QUIET_SECONDS wait here, counted.
    """

    HELD_MOST = 20

    subscription = models.ForeignKey(MailSubscription, models.CASCADE, related_name="+")
    subject = models.CharField(max_length=300)
    change = models.CharField(max_length=50)
    # The data of the newest HELD_MOST events, and the number of all.
    held = models.JSONField(db_default=[])
    held_count = models.PositiveIntegerField(db_default=0)
    # The mail that is being sent: the same two, moved here. Null: none.
    sending = models.JSONField(null=True)
    sending_count = models.PositiveIntegerField(db_default=0)
    failure_count = models.PositiveSmallIntegerField(db_default=0)
    next_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="mail_digest_once", fields=("subscription", "subject", "change")
            )
        ]
        indexes = [
            models.Index(
                name="mail_digest_due",
                fields=("next_at",),
                condition=models.Q(held_count__gt=0) | models.Q(sending__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"{self.change} of {self.subject}"
