"""Windows and freezes of calendars, and the decisions on them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.calendar import Calendar
from jobs.models.fields import author_key, lasting_key, no_nul, validate_zone
from jobs.models.owner import Owner
from jobs.models.token import ApiToken

DURATION_LIMITS = (MinValueValidator(1), MaxValueValidator(31 * 86_400))


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
    requested_by = author_key(settings.AUTH_USER_MODEL, _("asked for by"))
    # Who asked, if it was a program.
    requested_by_token = author_key(ApiToken, _("asked for by the token"))
    # Earlier requesters of this revision while it was unapproved, such as `user 3`, `token 5`.
    earlier_requesters = ArrayField(
        models.CharField(max_length=50), default=list, db_default=[], editable=False
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

    @property
    def requesters(self) -> list[tuple[str, str]]:
        """The kind (`user` or `token`) and key of each who asked for the present revision."""
        last = {"user": self.requested_by_id, "token": self.requested_by_token_id}
        named = [f"{kind} {key}" for kind, key in last.items() if key is not None]
        parts = [name.partition(" ") for name in (*self.earlier_requesters, *named)]
        return [(kind, key) for kind, _space, key in parts]

    def request_by(self, actor: Any, *, at: datetime, is_added: bool = False) -> None:
        """Note who asks for the window as it is now, for the caller to save.

        With `is_added`, those who asked before stay requesters.
        """
        earlier = self.requesters if is_added else []
        self.earlier_requesters = sorted({" ".join(one) for one in earlier})
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
    actor = lasting_key(settings.AUTH_USER_MODEL, _("by"))
    # Who decided, if it was a program.
    token = lasting_key(ApiToken, _("API token"), editable=False)
    actor_name = models.CharField(_("by"), max_length=150)
    at = models.DateTimeField(_("at"), db_default=Now())
    reason = models.CharField(_("reason"), max_length=500, blank=True)

    class Meta:
        verbose_name = _("decision on a window")
        verbose_name_plural = _("decisions on windows")
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.decision} by {self.actor_name}"
