"""Mails about events: who gets them, and what waits for the next one."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.notice import Interest


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
