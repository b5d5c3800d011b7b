"""Calendars: created, and their options changed; each is audited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from jobs.calendars.changes import changing
from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, near_hint, refuse_text
from jobs.models import AuditEntry, Calendar, Owner
from jobs.models.verbs import Actor

OPTIONS: Final = (
    *("name", "cut_off_seconds", "end", "spread_seconds", "needs_approval", "four_eyes"),
)
"""Fields of a calendar that callers set."""


def create_calendar(
    name: str, *, owner: Owner | None, actor: Actor = None, **options: Any
) -> Calendar:
    """Make a calendar of an owner, or a shared one (None); return it.

    It applies to nothing yet, and without a window it is always open. Raises OptionError for a bad
    option, and for a name that the owner has already.
    """
    _refuse_unknown(options)
    made = Calendar(owner=owner, name=name, **options)
    with transaction.atomic():
        _save(made)
        with changing(made):
            pass
        AuditEntry.write("create calendar", on=made, actor=actor, after=shown(made))
    made.refresh_from_db()
    return made


def change_calendar(
    calendar: Calendar, *, actor: Actor = None, reason: str = "", **options: Any
) -> Calendar:
    """Change options of a calendar; return it as it is now. Raises as `create_calendar` does."""
    _refuse_unknown(options)
    refuse_text("reason", reason, most=REASON_LIMIT)
    with changing(calendar) as locked:
        before = shown(locked)
        for name, value in options.items():
            setattr(locked, name, value)
        after = shown(locked)
        changed = [name for name in OPTIONS if before[name] != after[name]]
        if changed:
            _save(locked, update_fields=changed)
            AuditEntry.write(
                "change calendar",
                on=locked,
                actor=actor,
                reason=reason,
                before={name: before[name] for name in changed},
                after={name: after[name] for name in changed},
            )
    locked.refresh_from_db()
    return locked


def shown(calendar: Calendar) -> dict[str, Any]:
    """Return the options of a calendar."""
    return {name: getattr(calendar, name) for name in OPTIONS}


def _save(calendar: Calendar, **options: Any) -> None:
    if not isinstance(calendar.name, str) or not calendar.name.strip():
        raise OptionError("name", "is empty")
    try:
        calendar.save(**options)
    except ValidationError as error:
        fields: Mapping[str, list[str]] = error.message_dict
        [field, problems] = next(iter(fields.items()))
        if field in OPTIONS:
            raise OptionError(field, problems[0]) from None
        # The only constraint of several fields is the name of an owner.
        raise OptionError("name", f"is the name of another calendar: {calendar.name!r:.80}") from (
            None
        )


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in OPTIONS:
            raise OptionError(name[:60], f"is no option of a calendar{near_hint(name, OPTIONS)}")
