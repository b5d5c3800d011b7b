"""Calendars: windows, their approvals, and what a calendar applies to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import no_nul, validate_zone
from jobs.models.owner import Owner
from jobs.models.target import Target, TargetGroup
from jobs.models.token import ApiToken

if TYPE_CHECKING:
    from jobs.models.job import Job

CUT_OFF_LIMIT = 86_400
SPREAD_LIMIT = 3_600
DURATION_LIMITS = (MinValueValidator(1), MaxValueValidator(31 * 86_400))


class EndBehaviour(models.TextChoices):
    """What happens to an active run when its window closes."""

    LET_RUN = "let run", _("let it run")
    SOFT = "soft", _("ask it to stop (soft time limit)")
    HARD = "hard", _("end its process (hard time limit)")


class Calendar(models.Model):
    """A set of windows and freezes. Runs to which it applies start only while it is open.

    A calendar without an owner may apply to all owners; only superusers change it.
    """

    owner = models.ForeignKey(
        Owner,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="calendars",
        verbose_name=_("owner"),
        help_text=_("Empty: may apply to what is of any owner."),
    )
    name = models.CharField(_("name"), max_length=200, validators=[no_nul])
    cut_off_seconds = models.PositiveIntegerField(
        _("start cut-off in seconds"),
        default=0,
        validators=[MaxValueValidator(CUT_OFF_LIMIT)],
        help_text=_("No run starts in this many last seconds of an opening."),
    )
    end = models.CharField(
        _("at the close"), max_length=8, choices=EndBehaviour, default=EndBehaviour.LET_RUN
    )
    spread_seconds = models.PositiveIntegerField(
        _("spread starts over seconds"),
        default=0,
        validators=[MaxValueValidator(SPREAD_LIMIT)],
        help_text=_(
            "When it opens, the runs that waited for it start spread over this many seconds."
        ),
    )
    needs_approval = models.BooleanField(
        _("needs approval"),
        default=True,
        help_text=_("Its windows count only when they are approved. Freezes always count."),
    )
    four_eyes = models.BooleanField(
        _("four eyes"),
        default=True,
        help_text=_("Who asked for a window may not approve it."),
    )
    # +1 with each change of its openings.
    version = models.PositiveIntegerField(default=0, editable=False)
    # Its openings, which admission reads, are stored until then.
    computed_until = models.DateTimeField(null=True, editable=False)
    # SHA-256 of the secret in the address of its .ics feed.
    feed_hash = models.BinaryField(null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("calendar")
        verbose_name_plural = _("calendars")
        ordering = ("name", "id")
        permissions = [
            ("approve_window", _("Can approve, reject and revoke windows")),
            ("override_window", _("Can let runs start outside their windows")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=("owner", "name"), name="calendar_once_per_owner", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Raise ValidationError, with field and limit, instead of the table's error."""
        self.clean_fields(exclude={"owner"})
        self.validate_constraints()
        super().save(*args, **kwargs)

    @property
    def cut_off(self) -> timedelta:
        return timedelta(seconds=self.cut_off_seconds)


class WindowEffect(models.TextChoices):
    WINDOW = "window", _("window")
    FREEZE = "freeze", _("freeze")


class Window(models.Model):
    """One window or freeze of a calendar, once or recurring.

    `starts`, `excluded` and `added` are wall-clock times in `zone`: 2026-01-03T22:00:00. `revision`
    counts the changes that need a new approval; an approval is for one revision.
    """

    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="windows")
    effect = models.CharField(
        _("effect"), max_length=8, choices=WindowEffect, default=WindowEffect.WINDOW
    )
    starts = models.CharField(
        _("starts"), max_length=26, help_text=_("By the clock of its zone: 2026-01-03T22:00:00")
    )
    duration_seconds = models.PositiveIntegerField(
        _("duration in seconds"), validators=list(DURATION_LIMITS)
    )
    zone = models.CharField(
        _("time zone"), max_length=64, default="UTC", validators=[validate_zone]
    )
    rule = models.CharField(
        _("recurrence"),
        max_length=500,
        blank=True,
        validators=[no_nul],
        help_text=_("An RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=SA,SU. Empty: once."),
    )
    excluded = ArrayField(models.CharField(max_length=26), verbose_name=_("without"), default=list)
    added = ArrayField(models.CharField(max_length=26), verbose_name=_("and also"), default=list)
    valid_from = models.DateTimeField(_("valid from"), null=True, blank=True)
    valid_until = models.DateTimeField(_("valid until"), null=True, blank=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True, validators=[no_nul])
    revision = models.PositiveIntegerField(default=1, editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("asked for by"),
    )
    # Who asked, if it was a program.
    requested_by_token = models.ForeignKey(
        ApiToken,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("asked for by the token"),
    )
    requested_at = models.DateTimeField(_("asked for at"), db_default=Now(), editable=False)
    # From an iCalendar file: its source, and its UID there.
    source = models.CharField(max_length=200, blank=True, editable=False)
    source_uid = models.CharField(max_length=500, blank=True, editable=False)

    class Meta:
        verbose_name = _("window or freeze")
        verbose_name_plural = _("windows and freezes")
        ordering = ("calendar", "id")
        constraints = [
            models.CheckConstraint(
                name="window_duration_1s_to_31d",
                condition=models.Q(duration_seconds__range=(1, 31 * 86_400)),
            )
        ]

    def __str__(self) -> str:
        return f"{self.effect} from {self.starts} {self.zone}"

    @property
    def owner(self) -> Owner | None:
        """The owner of its calendar; None of one that is shared."""
        return self.calendar.owner

    @property
    def requester(self) -> Any:
        """The user or the API token that asked for it; None if that is not known."""
        return self.requested_by or self.requested_by_token

    def request_by(self, actor: Any, *, at: datetime) -> None:
        """Note who asks for the window as it is now, for the caller to save."""
        is_token = isinstance(actor, ApiToken)
        self.requested_by_id = None if actor is None or is_token else actor.pk
        self.requested_by_token_id = actor.pk if is_token else None
        self.requested_at = at


class Decision(models.TextChoices):
    APPROVED = "approved", _("approved")
    REJECTED = "rejected", _("rejected")
    REVOKED = "revoked", _("revoked")


class WindowDecision(models.Model):
    """A decision on a window's revision, for one occurrence or all. The newest one counts."""

    window = models.ForeignKey(Window, models.CASCADE, related_name="decisions")
    revision = models.PositiveIntegerField()
    decision = models.CharField(_("decision"), max_length=8, choices=Decision)
    occurrence_at = models.DateTimeField(
        _("occurrence"), null=True, help_text=_("When it starts. Empty: all of them.")
    )
    expires_at = models.DateTimeField(_("expires at"), null=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
        verbose_name=_("by"),
    )
    # Who decided, if it was a program.
    token = models.ForeignKey(
        ApiToken,
        models.DO_NOTHING,
        null=True,
        editable=False,
        related_name="+",
        db_constraint=False,
        verbose_name=_("API token"),
    )
    actor_name = models.CharField(_("by"), max_length=150)
    at = models.DateTimeField(_("at"), db_default=Now())
    reason = models.CharField(_("reason"), max_length=500, blank=True)

    class Meta:
        verbose_name = _("decision on a window")
        verbose_name_plural = _("decisions on windows")
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.decision} by {self.actor_name}"


def _exactly_one(*names: str) -> models.Q:
    """Return the condition that exactly one of these columns is not null."""
    one = models.Q()
    for given in names:
        one |= models.Q(**{f"{name}__isnull": name != given for name in names})
    return one


class Attachment(models.Model):
    """What a calendar applies to: an owner, a job, a target, or a group of targets."""

    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="attachments")
    owner = models.ForeignKey(
        Owner, models.CASCADE, null=True, blank=True, related_name="attachments"
    )
    job = models.ForeignKey(
        "jobs.Job", models.CASCADE, null=True, blank=True, related_name="attachments"
    )
    target = models.ForeignKey(
        Target, models.CASCADE, null=True, blank=True, related_name="attachments"
    )
    group = models.ForeignKey(
        TargetGroup, models.CASCADE, null=True, blank=True, related_name="attachments"
    )

    class Meta:
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        constraints = [
            models.CheckConstraint(
                name="attachment_to_one_thing",
                condition=_exactly_one("owner", "job", "target", "group"),
            ),
            *(
                models.UniqueConstraint(
                    fields=("calendar", to),
                    name=f"attachment_once_per_{to}",
                    condition=models.Q(**{f"{to}__isnull": False}),
                )
                for to in ("owner", "job", "target", "group")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.calendar} of {self.to}"

    @property
    def to(self) -> Owner | Job | Target | TargetGroup:
        return next(it for it in (self.owner, self.job, self.target, self.group) if it is not None)

    @property
    def owner_of_it(self) -> Owner:
        to = self.to
        return to if isinstance(to, Owner) else to.owner


class Opening(models.Model):
    """A span in which a calendar is open, which admission reads; made weeks ahead."""

    pk = models.CompositePrimaryKey("calendar_id", "opens_at")
    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="openings")
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()

    class Meta:
        verbose_name = _("opening")
        verbose_name_plural = _("openings")

    def __str__(self) -> str:
        return f"{self.opens_at} to {self.closes_at}"
