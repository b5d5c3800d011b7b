"""The audit: what operators did. Triggers refuse changes and deletions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.models.fields import lasting_key
from jobs.models.owner import Owner
from jobs.models.token import ApiToken, columns_of


class AuditEntry(models.Model):
    """One action of a user or an API token: its object, reason and details."""

    # A trigger overwrites both at insert.
    at = models.DateTimeField(_("at"), db_default=Now())
    database_role = models.CharField(
        _("database role"), max_length=63, db_default="", editable=False
    )
    actor = lasting_key(settings.AUTH_USER_MODEL, _("actor"))
    # Who acted, if it was a program.
    token = lasting_key(ApiToken, _("API token"), editable=False)
    # The name remains when the account is deleted.
    actor_name = models.CharField(_("actor"), max_length=150)
    action = models.CharField(_("action"), max_length=64)
    object_type = models.CharField(_("kind of object"), max_length=64)
    object_id = models.CharField(_("object"), max_length=64)
    owner = lasting_key(Owner, _("owner"))
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    details = models.JSONField(_("details"), default=dict)

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        ordering = ("-id",)
        indexes = [
            models.Index(name="audit_object", fields=("object_type", "object_id")),
            # Of lists, newest first.
            models.Index(name="audit_of_owner", fields=("owner", "-id")),
            models.Index(name="audit_by_actor", fields=("actor_name", "-id")),
            models.Index(name="audit_by_action", fields=("action", "-id")),
            models.Index(name="audit_by_time", fields=("at",)),
        ]

    def __str__(self) -> str:
        # Many actions name their object: "request window 6", and not "request window window 6".
        is_named = self.action.endswith(self.object_type)
        what = self.action if is_named else f"{self.action} {self.object_type}"
        text = f"{what} {self.object_id}"
        return f"{self.actor_name}: {text}" if self.actor_name else text

    @classmethod
    def write(
        cls, action: str, *, on: models.Model, actor: Any = None, reason: str = "", **details: Any
    ) -> AuditEntry:
        """Add an entry for an action on one object, in the caller's transaction.

        Raises OptionError for a reason that is too long.
        """
        [entry] = cls.write_all(action, on=[on], actor=actor, reason=reason, **details)
        return entry

    @classmethod
    def write_all(
        cls,
        action: str,
        *,
        on: Sequence[models.Model],
        actor: Any = None,
        reason: str = "",
        **details: Any,
    ) -> list[AuditEntry]:
        """Add an entry for each object, in one statement; select the objects with their owners."""
        refuse_text("reason", reason, most=REASON_LIMIT)
        return AuditEntry.objects.bulk_create(
            AuditEntry(
                **columns_of(actor, "actor", "token"),
                actor_name=actor.get_username() if actor else "",
                action=action,
                object_type=str(each._meta.model_name),
                object_id=str(each.pk),
                owner=each if isinstance(each, Owner) else getattr(each, "owner", None),
                reason=reason,
                details=details,
            )
            for each in on
        )
