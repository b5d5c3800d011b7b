"""Limits of owners: weight, rate, concurrency, and pauses."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_naive, refuse_text
from jobs.core.sql import now
from jobs.models import AuditEntry, Owner
from jobs.models.fields import COUNT_MOST, DAYS_MOST, WEIGHT_MOST
from jobs.models.verbs import Actor
from jobs.owners.fair_queue import publish_settings_on_commit
from jobs.runs import preparation

LAST_YEAR: Final = 9998
"""Python has no later year than 9999, and an offset may lead there."""


def pause_owner(
    owner: Owner | str, *, until: datetime | None = None, reason: str = "", actor: Actor = None
) -> None:
    """Start no further run of an owner until a time, or until it is resumed; active runs continue.

    Raises UnknownOwner; OptionError for a long reason, or a time without zone, in the past or
    after LAST_YEAR.
    """
    owner = preparation.as_owner(owner)
    refuse_text("reason", reason, most=REASON_LIMIT)
    if until is not None:
        refuse_naive("until", until)
        if until.year > LAST_YEAR:
            raise OptionError("until", f"is at most in {LAST_YEAR}")
        if until <= now():
            raise OptionError("until", "has passed already")
    with transaction.atomic():
        Owner.objects.filter(pk=owner.pk).update(
            paused_at=Now(), paused_until=until, paused_reason=reason
        )
        owner.refresh_from_db()
        AuditEntry.write(
            "pause", on=owner, actor=actor, reason=reason, until=until and until.isoformat()
        )
        publish_settings_on_commit(owner)


def resume_owner(owner: Owner | str, *, reason: str = "", actor: Actor = None) -> None:
    """Let an owner's runs start again, at once."""
    owner = preparation.as_owner(owner)
    with transaction.atomic():
        Owner.objects.filter(pk=owner.pk).update(
            paused_at=None, paused_until=None, paused_reason=""
        )
        owner.refresh_from_db()
        AuditEntry.write("resume", on=owner, actor=actor, reason=reason)
        publish_settings_on_commit(owner)


LIMITS: Final = {
    "weight": WEIGHT_MOST,
    "max_running": COUNT_MOST,
    "rate_limit_per_minute": COUNT_MOST,
    "run_days": DAYS_MOST,
    "failed_run_days": DAYS_MOST,
}
"""The limits that may be set, from 1 to these maxima."""


def limit_owner(
    owner: Owner | str, *, actor: Actor = None, reason: str = "", **limits: int | None
) -> None:
    """Set `weight` (1 to 1000), `max_running` or `rate_limit_per_minute` (None: no limit).

    Or `run_days` and `failed_run_days`, the days for which ended runs stay (1 to 3660; None: as
    the installation has it). Others are not changed; active runs continue. Raises OptionError and
    UnknownOwner.
    """
    owner = preparation.as_owner(owner)
    refuse_text("reason", reason, most=REASON_LIMIT)
    for name, limit in limits.items():
        if name not in LIMITS:
            near = get_close_matches(name, LIMITS, n=1)
            raise OptionError(name, f"is no limit; {', '.join(near or LIMITS)} may be set")
        if limit is None and name != "weight":
            continue
        # A bool is an int in Python.
        if type(limit) is not int or not 1 <= limit <= LIMITS[name]:
            none = "" if name == "weight" else ", or None for no limit"
            problem = f"is a whole number from 1 to {LIMITS[name]}{none}; not {limit!r:.80}"
            raise OptionError(name, problem)
    with transaction.atomic():
        # Locked, so that the audit has the values before.
        owner.refresh_from_db(from_queryset=Owner.objects.select_for_update())
        before = {name: getattr(owner, name) for name in limits}
        for name, limit in limits.items():
            setattr(owner, name, limit)
        owner.save(update_fields=list(limits))
        AuditEntry.write("limit", on=owner, actor=actor, reason=reason, before=before, after=limits)
        publish_settings_on_commit(owner)
