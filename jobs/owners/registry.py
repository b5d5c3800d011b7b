"""Owners are added, and their own facts changed: name, zone, objective. `limits` sets the rest."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.models import AuditEntry, Owner
from jobs.models.verbs import Actor
from jobs.owners.limits import limit_owner

FACTS: Final = ("name", "zone", "wait_objective_seconds", "wait_objective_percent")
"""The fields that an owner's own admin may change."""


def add_owner(
    slug: str,
    *,
    name: str = "",
    zone: str = "UTC",
    wait_objective_seconds: int | None = None,
    wait_objective_percent: float = 95,
    actor: Actor = None,
    reason: str = "",
    **limits: int | None,
) -> Owner:
    """Add an owner, with the limits of `limit_owner`; return it.

    Raises OptionError for a wrong field, also for a slug that another owner has.
    """
    owner = Owner(
        slug=slug,
        name=name,
        zone=zone,
        wait_objective_seconds=wait_objective_seconds,
        wait_objective_percent=wait_objective_percent,
    )
    _refuse_wrong(owner, "slug", *FACTS)
    with transaction.atomic():
        try:
            with transaction.atomic():
                owner.save()
        except IntegrityError:
            raise OptionError("slug", f"{slug} is an owner already") from None
        AuditEntry.write("create", on=owner, actor=actor, reason=reason)
        # Also without limits: the fair queues learn of the owner.
        limit_owner(owner, actor=actor, reason=reason, **limits)
    owner.refresh_from_db()
    return owner


def change_owner(
    owner: Owner, *, actor: Actor = None, reason: str = "", **facts: str | float | None
) -> None:
    """Change the facts and the limits that are given; raise OptionError for a wrong one.

    The caller may have locked the row.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    own = {name: facts[name] for name in FACTS if name in facts}
    limits = {name: limit for name, limit in facts.items() if name not in FACTS}
    with transaction.atomic():
        if own:
            owner.refresh_from_db(from_queryset=Owner.objects.select_for_update())
            before = {name: getattr(owner, name) for name in own}
            for name, value in own.items():
                setattr(owner, name, value)
            _refuse_wrong(owner, *own)
            owner.save(update_fields=list(own))
            AuditEntry.write(
                "change", on=owner, actor=actor, reason=reason, before=before, after=own
            )
        if limits:
            limit_owner(owner, actor=actor, reason=reason, **limits)  # type: ignore[arg-type]


def _refuse_wrong(owner: Owner, *fields: str) -> None:
    """Raise OptionError for the first wrong one of these fields."""
    others = {field.name for field in owner._meta.fields} - set(fields)
    try:
        owner.clean_fields(exclude=others)
    except ValidationError as error:
        [(field, messages), *_] = error.message_dict.items()
        raise OptionError(field, messages[0]) from None
