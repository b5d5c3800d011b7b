"""Calendars: their options, the owners, jobs and targets that they apply to, and their openings."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models.functions import Collate, Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import author_key, one_line
from jobs.models.owner import Owner
from jobs.models.target import Target, TargetGroup

if TYPE_CHECKING:
    from jobs.models.job import Job

CUT_OFF_LIMIT = 86_400
SPREAD_LIMIT = 3_600


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
        help_text=_("Empty: a shared calendar, which may apply to any owner."),
    )
    name = models.CharField(_("name"), max_length=200, validators=[one_line])
    cut_off_seconds = models.PositiveIntegerField(
        _("start cut-off in seconds"),
        default=0,
        validators=[MaxValueValidator(CUT_OFF_LIMIT)],
        help_text=_("In this many seconds before the close no run starts."),
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
        help_text=_("The person who requests a window may not approve it."),
    )
    # +1 with each change of its openings.
    version = models.PositiveIntegerField(default=0, editable=False)
    # Its openings are stored up to this time. Admission reads them.
    computed_until = models.DateTimeField(null=True, editable=False)
    # SHA-256 of the secret in the address of its .ics feed.
    feed_hash = models.BinaryField(null=True, editable=False)
    # The user who made the address: the feed shows what they see, and stops with them.
    feed_by = author_key(settings.AUTH_USER_MODEL)
    feed_has_maker = models.BooleanField(default=False, db_default=False, editable=False)
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
        # For searches by the beginning of a name; "C" works with any collation of the database.
        indexes = [models.Index(Collate("name", "C"), "owner", name="calendar_by_name")]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; raise ValidationError with field and limit, not the database's IntegrityError."""
        self.clean_fields(exclude={"owner"})
        self.validate_constraints()
        super().save(*args, **kwargs)

    @property
    def cut_off(self) -> timedelta:
        return timedelta(seconds=self.cut_off_seconds)


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
    """A span in which a calendar is open. Made weeks ahead; admission reads it."""

    pk = models.CompositePrimaryKey("calendar_id", "opens_at")
    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="openings")
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()

    class Meta:
        verbose_name = _("opening")
        verbose_name_plural = _("openings")

    def __str__(self) -> str:
        return f"{self.opens_at} to {self.closes_at}"
