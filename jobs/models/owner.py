"""Owners and their members."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from fleet import OWNER_NAME
from jobs.core.sql import now
from jobs.models.fields import (
    COUNT_LIMITS,
    DAYS_LIMITS,
    DAYS_MOST,
    OBJECTIVE_PERCENT_LEAST,
    OBJECTIVE_PERCENT_LIMITS,
    OBJECTIVE_PERCENT_MOST,
    OBJECTIVE_SECONDS_LIMITS,
    OBJECTIVE_SECONDS_MOST,
    OWNER_LIMIT,
    OWNER_RULE,
    WEIGHT_LIMITS,
    no_nul,
    one_line,
    owner_name,
    validate_zone,
)

PAUSED = models.Q(paused_at__isnull=False) & (
    models.Q(paused_until__isnull=True) | models.Q(paused_until__gt=Now())
)
"""The condition that an owner is paused now, as in admit.sql, admit_plain.sql and unblock.sql."""


@lru_cache(maxsize=100_000)
def slug_of(owner_id: int) -> str:
    """Return the slug of an owner by its id, cached: it stays until a flush."""
    return Owner.objects.values_list("slug", flat=True).get(pk=owner_id)


def _forget_slugs(**_signal: Any) -> None:
    slug_of.cache_clear()


# `flush`, which Django's TransactionTestCase calls too, may let the ids begin at 1 again.
post_migrate.connect(_forget_slugs, dispatch_uid="fairshift slugs of owners")


class OwnerQuerySet(models.QuerySet["Owner"]):
    def paused(self) -> OwnerQuerySet:
        """Owners whose runs do not start now."""
        return self.filter(PAUSED)


def _null_or(name: str, **limits: Any) -> models.CheckConstraint:
    """Return the constraint that a column is null or within limits: `run_days__range=(1, 9)`."""
    column = next(iter(limits)).partition("__")[0]
    is_null = models.Q(**{f"{column}__isnull": True})
    return models.CheckConstraint(name=name, condition=is_null | models.Q(**limits))


class Owner(models.Model):
    """A customer, team or tenant. Its runs share the workers with those of other owners."""

    slug = models.CharField(
        _("slug"),
        max_length=OWNER_LIMIT,
        unique=True,
        validators=[owner_name],
        help_text=OWNER_RULE,
    )
    name = models.CharField(_("name"), max_length=200, blank=True, validators=[one_line])
    weight = models.PositiveSmallIntegerField(
        _("weight"),
        default=1,
        validators=WEIGHT_LIMITS,
        help_text=_("Share of the workers, in proportion to the others' weights: 1 to 1000."),
    )
    max_running = models.PositiveIntegerField(
        _("most running at once"),
        null=True,
        blank=True,
        validators=COUNT_LIMITS,
        help_text=_("Empty: no limit."),
    )
    rate_limit_per_minute = models.PositiveIntegerField(
        _("most starts a minute"),
        null=True,
        blank=True,
        validators=COUNT_LIMITS,
        help_text=_("Spread evenly, a second's worth at once. Empty: no limit."),
    )
    run_days = models.PositiveSmallIntegerField(
        _("days that ended runs stay"),
        null=True,
        blank=True,
        validators=DAYS_LIMITS,
        help_text=_("1 to 3660. Empty: as the installation has it."),
    )
    failed_run_days = models.PositiveSmallIntegerField(
        _("days that failed runs stay"),
        null=True,
        blank=True,
        validators=DAYS_LIMITS,
        help_text=_("1 to 3660. Empty: as the installation has it."),
    )
    wait_objective_seconds = models.PositiveIntegerField(
        _("objective: longest wait in seconds"),
        null=True,
        blank=True,
        validators=OBJECTIVE_SECONDS_LIMITS,
        help_text=_("From when a run may start to its start: 1 to 86400. Empty: no objective."),
    )
    wait_objective_percent = models.FloatField(
        _("objective: percent of the starts"),
        default=95,
        db_default=95,
        validators=OBJECTIVE_PERCENT_LIMITS,
        help_text=_("The part that starts within that wait: 50 to 99.9."),
    )
    paused_at = models.DateTimeField(_("paused at"), null=True, blank=True, editable=False)
    paused_until = models.DateTimeField(_("paused until"), null=True, blank=True)
    paused_reason = models.CharField(
        _("reason of the pause"), max_length=500, blank=True, validators=[no_nul]
    )
    zone = models.CharField(
        _("time zone"), max_length=64, default="UTC", validators=[validate_zone]
    )
    # +1 with each change of its calendars; 0: no calendar has ever applied.
    calendar_version = models.PositiveIntegerField(db_default=0, editable=False)
    # The calendar version by which its waiting runs were gated last.
    gated_version = models.PositiveIntegerField(db_default=0, editable=False)
    # The version by which they are being gated now, and the last run that is done; null: no gating.
    gating_version = models.PositiveIntegerField(db_default=0, editable=False)
    gated_to = models.UUIDField(null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        verbose_name = _("owner")
        verbose_name_plural = _("owners")
        ordering = ("slug",)
        permissions = [("pause_owner", _("Can pause and resume an owner"))]
        constraints = [
            models.CheckConstraint(
                name="owner_slug_is_a_name_of_1_to_100",
                condition=models.Q(slug__regex=rf"^{OWNER_NAME.pattern}$"),
            ),
            models.CheckConstraint(
                name="owner_weight_1_to_1000", condition=models.Q(weight__range=(1, 1000))
            ),
            _null_or("owner_max_running_positive", max_running__gte=1),
            _null_or("owner_rate_limit_positive", rate_limit_per_minute__gte=1),
            _null_or("owner_run_days_1_to_3660", run_days__range=(1, DAYS_MOST)),
            _null_or("owner_failed_run_days_1_to_3660", failed_run_days__range=(1, DAYS_MOST)),
            _null_or(
                "owner_wait_objective_1_to_86400",
                wait_objective_seconds__range=(1, OBJECTIVE_SECONDS_MOST),
            ),
            models.CheckConstraint(
                name="owner_wait_objective_percent_50_to_99_9",
                condition=models.Q(
                    wait_objective_percent__range=(OBJECTIVE_PERCENT_LEAST, OBJECTIVE_PERCENT_MOST)
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Raise ValidationError for a bad slug; the table's error would not name the rule."""
        if self._state.adding:
            others = {field.name for field in self._meta.fields} - {"slug"}
            self.clean_fields(exclude=others)
        super().save(*args, **kwargs)

    def is_paused(self, *, at: datetime | None = None) -> bool:
        """Say whether the owner is paused at a moment (default: now)."""
        if self.paused_at is None:
            return False
        return self.paused_until is None or self.paused_until > (at or now())


class Role(models.TextChoices):
    VIEWER = "viewer", _("viewer")
    OPERATOR = "operator", _("operator")
    APPROVER = "approver", _("approver")
    ADMIN = "admin", _("admin")


class Membership(models.Model):
    """A user who is a member of an owner, in a role."""

    owner = models.ForeignKey(Owner, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="fairshift_memberships"
    )
    role = models.CharField(_("role"), max_length=16, choices=Role, default=Role.VIEWER)

    class Meta:
        verbose_name = _("member")
        verbose_name_plural = _("members")
        constraints = [
            models.UniqueConstraint(fields=("owner", "user"), name="membership_once_per_owner")
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role}) of {self.owner}"
