"""Pausing and resuming an owner: its queued runs wait, and go on by themselves."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models.functions import Now

from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.sql import now
from jobs.models import AuditEntry, Owner
from jobs.owners.fair_queue import tell_on_commit
from jobs.runs import preparation

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

PAUSE_REASON_LIMIT: Final = 200


def pause_owner(
    owner: Owner | str,
    *,
    until: datetime | None = None,
    reason: str = "",
    actor: AbstractBaseUser | None = None,
) -> None:
    """Let no further run of an owner start, until a time or until resumed; what runs goes on.

    Raises UnknownOwner for a name that is none, OptionError for a reason that is too long to be
    kept, for a time without a zone, and for one that has passed.
    """
    owner = preparation.named(owner)
    refuse_text("reason", reason, most=PAUSE_REASON_LIMIT)
    if until is not None and (not isinstance(until, datetime) or until.utcoffset() is None):
        raise OptionError("until", "is a datetime with a time zone")
    if until is not None and until <= now():
        raise OptionError("until", "has passed already")
    with transaction.atomic():
        Owner.objects.filter(pk=owner.pk).update(
            paused_at=Now(), paused_until=until, paused_reason=reason
        )
        owner.refresh_from_db()
        AuditEntry.write(
            "pause", on=owner, actor=actor, reason=reason, until=until and until.isoformat()
        )
        tell_on_commit(owner)


def resume_owner(
    owner: Owner | str, *, reason: str = "", actor: AbstractBaseUser | None = None
) -> None:
    """Let an owner's runs start again, at once."""
    owner = preparation.named(owner)
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        Owner.objects.filter(pk=owner.pk).update(
            paused_at=None, paused_until=None, paused_reason=""
        )
        owner.refresh_from_db()
        AuditEntry.write("resume", on=owner, actor=actor, reason=reason)
        tell_on_commit(owner)
