"""Webhooks: the endpoints that events are sent to, and each delivery with its attempts."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.core.crypto import Place
from jobs.models.fields import lasting_key, mark_deleted, no_nul
from jobs.models.notice import Interest
from jobs.models.owner import Owner

URL_MOST = 2_000
KEY_FIELD = "webhook key"
"""The field that encrypted keys are bound to."""


class Endpoints(models.Manager["WebhookEndpoint"]):
    """The endpoints that are not deleted."""

    def get_queryset(self) -> models.QuerySet[WebhookEndpoint]:
        return super().get_queryset().filter(deleted_at=None)


class WebhookEndpoint(Interest):
    """A URL that gets the events it asks for, signed with a key that only it and we know.

    An endpoint is deleted by a mark: with millions of deliveries a statement would take too long.
    Retention deletes the deliveries in batches, and the row after them.
    """

    DELETED = {"is_active": False, "deleted_at": Now()}
    """The columns that a deletion sets. `jobs/definitions/sql/delete_hooks.sql` sets them, too."""

    owner = models.ForeignKey(
        Owner, mark_deleted, null=True, related_name="+", verbose_name=_("owner")
    )
    job = models.ForeignKey(
        "jobs.Job", mark_deleted, null=True, related_name="+", verbose_name=_("job")
    )
    url = models.CharField(_("URL"), max_length=URL_MOST, validators=[no_nul])
    has_details = models.BooleanField(
        _("with details"),
        default=False,
        help_text=_(
            "Send arguments, results and error texts, too, as far as its maker may see them."
        ),
    )
    # Both keys are encrypted, if there is a key ring. The old one signs, too, until its time.
    secret = models.BinaryField(editable=False)
    secret_key = models.SmallIntegerField(db_default=0, editable=False)
    old_secret = models.BinaryField(null=True, editable=False)
    old_secret_key = models.SmallIntegerField(db_default=0, editable=False)
    old_secret_until = models.DateTimeField(_("old key until"), null=True, editable=False)
    # Random: what the encrypted keys are bound to, beside the owner.
    bound_to = models.CharField(max_length=32, editable=False)
    # Failed attempts since the last success. While it is not 0, one delivery is tried at a time.
    failure_count = models.PositiveIntegerField(
        _("failures in a row"), db_default=0, editable=False
    )
    retry_at = models.DateTimeField(_("next attempt"), null=True, editable=False)
    last_delivered_at = models.DateTimeField(_("last delivery"), null=True, editable=False)
    deleted_at = models.DateTimeField(_("deleted at"), null=True, editable=False)

    objects = Endpoints()

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ("-id",)
        indexes = [models.Index(name="webhook_of_owner", fields=("owner", "-id"))]
        constraints = [
            models.CheckConstraint(
                name="webhook_deleted_is_inactive",
                condition=models.Q(deleted_at=None) | models.Q(is_active=False),
            )
        ]

    @property
    def place(self) -> Place:
        """What the encrypted keys are bound to."""
        return Place(self.owner.slug if self.owner is not None else "", self.bound_to)


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    DELIVERED = "delivered", _("delivered")
    FAILED = "failed", _("failed")


class WebhookDelivery(models.Model):
    """One event for one endpoint. A replay sends the same row again, under the same id."""

    TRIES_MOST = 20

    endpoint = models.ForeignKey(WebhookEndpoint, models.CASCADE, related_name="deliveries")
    # Without a constraint: an owner is deleted before the deliveries, which retention deletes.
    owner = lasting_key(Owner)
    event_id = models.CharField(_("event"), max_length=100)
    event_type = models.CharField(_("kind"), max_length=32)
    event_at = models.DateTimeField(_("at"))
    data = models.JSONField(_("data"))
    state = models.CharField(_("state"), max_length=10, choices=DeliveryState)
    attempt_count = models.PositiveIntegerField(_("attempts"), db_default=0)
    next_at = models.DateTimeField(_("next attempt"))
    created_at = models.DateTimeField(_("made at"), db_default=Now())
    ended_at = models.DateTimeField(_("ended at"), null=True)
    # [[seconds since 1970, HTTP status or null, problem, milliseconds], ...], the newest last.
    tries = models.JSONField(db_default=[])

    class Meta:
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        default_permissions = ("view",)
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                name="webhook_event_once_per_endpoint", fields=("endpoint", "event_id")
            )
        ]
        indexes = [
            models.Index(name="webhook_delivery_of", fields=("endpoint", "-id")),
            models.Index(name="webhook_delivery_made", fields=("created_at",)),
            models.Index(
                name="webhook_delivery_due",
                fields=("endpoint", "next_at"),
                condition=models.Q(state="waiting"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"

    @property
    def attempts(self) -> list[tuple[datetime, int | None, str, int]]:
        """The last attempts: when, the answer's status if any, what was wrong, milliseconds."""
        return [
            (datetime.fromtimestamp(at, UTC), status, problem, milliseconds)
            for at, status, problem, milliseconds in self.tries
        ]

    @property
    def problem(self) -> str:
        """What was wrong with the last attempt; empty if nothing was."""
        return self.tries[-1][2] if self.tries else ""
