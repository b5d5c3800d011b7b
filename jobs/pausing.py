"""Pausing and resuming an owner: its queued runs wait, and go on by themselves."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models.functions import Now

from jobs import unblocking
from jobs.models import AuditEntry, Owner

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser


def pause_owner(
    owner: Owner,
    *,
    until: datetime | None = None,
    reason: str = "",
    actor: AbstractBaseUser | None = None,
) -> None:
    """Let no further run of an owner start, until a time or until resumed; what runs goes on."""
    with transaction.atomic():
        Owner.objects.filter(pk=owner.pk).update(
            paused_at=Now(), paused_until=until, paused_reason=reason
        )
        owner.refresh_from_db()
        AuditEntry.write(
            "pause", on=owner, actor=actor, reason=reason, until=until and until.isoformat()
        )


def resume_owner(owner: Owner, *, reason: str = "", actor: AbstractBaseUser | None = None) -> None:
    """Let an owner's runs start again, at once."""
    with transaction.atomic():
        Owner.objects.filter(pk=owner.pk).update(
            paused_at=None, paused_until=None, paused_reason=""
        )
        owner.refresh_from_db()
        AuditEntry.write("resume", on=owner, actor=actor, reason=reason)
        transaction.on_commit(
            lambda: unblocking.publish_freed(owner_ids=[owner.pk], lock_keys=[]), robust=True
        )
