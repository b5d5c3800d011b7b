"""Checks that endpoints and mail subscriptions share when they are made or changed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, Final

from django.db.models.functions import Now

from jobs.core import log_events
from jobs.core.errors import AccessDenied, OptionError
from jobs.core.inputs import near_hint, refuse_name
from jobs.core.sql import now
from jobs.core.states import ENDED
from jobs.models import ApiToken, EventType, Job, Owner, Scope
from jobs.models.access import access_of
from jobs.models.notice import Interest
from jobs.models.token import columns_of

logger = logging.getLogger(__name__)

NAME_LIMIT: Final = 100
PATTERNS_LIMIT: Final = 100
"""Most patterns of tasks."""
STATES: Final = tuple(sorted(state.value for state in ENDED))
CONFIRM: Final = "an admin who may see them makes it active again"
"""The end of the reason of a row that was switched off because of its maker."""
COMMON: Final = ("name", "events", "tasks", "job", "states", "is_active")
"""The fields that a caller may set of both."""


def checked(given: Mapping[str, Any], *, owner: Owner | None, actor: Any) -> dict[str, Any]:
    """Return the common fields that are given, checked; raise OptionError with field and limit."""
    found = {name: given[name] for name in COMMON if name in given}
    if "name" in found:
        refuse_name("name", found["name"], most=NAME_LIMIT)
        if not found["name"].strip():
            raise OptionError("name", "is empty")
    if "events" in found:
        found["events"] = _words("events", found["events"], EventType.values, least=1)
    if "states" in found:
        found["states"] = _words("states", found["states"], STATES, least=0)
    if "tasks" in found:
        found["tasks"] = _patterns(found["tasks"])
    if found.get("job") is not None:
        found["job"] = _job(found["job"], owner, actor)
    return found


def refuse_without_admin(actor: Any, owner: Owner | None) -> None:
    """Raise AccessDenied unless the actor is an admin of the owner, or of all; None: the system."""
    if actor is None:
        return
    if not access_of(actor).has(Scope.ADMIN, owner.pk if owner is not None else None):
        whose = owner.slug if owner is not None else "the whole installation"
        raise AccessDenied(Scope.ADMIN.value, whose)


def sees_runs(actor: Any, owner_id: int | None) -> bool:
    """Say whether a user or token may see the runs of an owner (None: of all)."""
    found = access_of(actor)
    return found.has(Scope.READ, owner_id) and found.permits("jobs.view_run")


def refuse_without_runs(actor: Any, owner: Owner | None) -> None:
    """Raise AccessDenied unless the actor may see the runs that are told of; None: the system."""
    if actor is not None and not sees_runs(actor, owner.pk if owner is not None else None):
        whose = owner.slug if owner is not None else "the whole installation"
        raise AccessDenied("read (to see runs, with jobs.view_run)", whose)


def why_stopped(row: Interest) -> str:
    """Return why a row may tell of nothing now; empty if its maker may see the runs it tells of.

    Rows that code has made have no maker, and go on.
    """
    if not row.has_maker:
        return ""
    maker = maker_of(row)
    if maker is None:
        return f"its maker is gone: {CONFIRM}"
    if sees_runs(maker, row.owner_id):
        return ""
    name = maker.get_username()
    return f"{name} may not see these runs now: {CONFIRM}"


def maker_of(row: Interest) -> Any:
    """Return the user or token that made a row, with the rights that they have now."""
    if row.created_by_token_id is not None:
        return ApiToken.objects.usable().filter(pk=row.created_by_token_id).first()
    return row.created_by


def stop(row: Interest, why: str) -> None:
    """Switch a row off, unless an operator has changed it since it was read; what waits stays."""
    same = {"is_active": True, "created_by": row.created_by_id}
    rows = type(row)._default_manager.filter(
        pk=row.pk, created_by_token=row.created_by_token_id, **same
    )
    if rows.update(is_active=False, disabled_at=Now(), disabled_reason=why):
        kind = row._meta.verbose_name
        log_events.INTEREST_STOPPED.log(logger, kind=str(kind), id=row.pk, reason=why)


def sends_other(row: Interest, changed: Collection[str]) -> bool:
    """Say whether a change may send more than before, or elsewhere.

    A name, a stop, and an end of details do not.
    """
    harmless = {"name"} if row.is_active else {"name", "is_active"}
    if not getattr(row, "has_details", False):
        harmless.add("has_details")
    return not harmless.issuperset(changed)


def confirm(row: Interest, actor: Any) -> None:
    """Make the actor the maker of a changed row: the actor decides where it sends what it tells."""
    refuse_without_runs(actor, row.owner)
    for name, value in made_by(actor).items():
        setattr(row, name, value)


def made_by(actor: Any) -> dict[str, Any]:
    """Return the fields that say who made a row."""
    has_maker = actor is not None
    return {"has_maker": has_maker, **columns_of(actor, "created_by", "created_by_token")}


def apply(row: Interest, fields: Mapping[str, Any]) -> list[str]:
    """Set fields of a row; return the names of those that changed."""
    changed = [name for name, value in fields.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, fields[name])
    return changed


def word_of_change(row: Interest, changed: Collection[str]) -> str:
    """Return the name of a change in the audit."""
    if list(changed) == ["is_active"]:
        return "enable" if row.is_active else "disable"
    return "change"


def note_switch(row: Interest, changed: Collection[str], reason: str) -> None:
    """Note when a row was switched off, and why; forget both when it is switched on again."""
    if "is_active" in changed:
        row.disabled_at = None if row.is_active else now()
        row.disabled_reason = "" if row.is_active else (reason or "by an operator")


def _words(field: str, value: Any, known: Collection[str], *, least: int) -> list[str]:
    given = [str(getattr(one, "value", one)) for one in value]
    for word in given:
        if word not in known:
            hint = near_hint(word, known)
            raise OptionError(field, f"holds {word!r:.60}; known are {', '.join(known)}{hint}")
    if len(given) < least:
        raise OptionError(field, f"is empty; choose at least one of {', '.join(known)}")
    return [word for word in known if word in given]


def _patterns(value: Any) -> list[str]:
    given = list(dict.fromkeys(str(one).strip() for one in value))
    if len(given) > PATTERNS_LIMIT:
        raise OptionError("tasks", f"holds at most {PATTERNS_LIMIT} names; these are {len(given)}")
    for one in given:
        refuse_name("tasks", one, most=255)
        if not one:
            raise OptionError("tasks", "holds an empty name")
    return given


def _job(given: Job | int, owner: Owner | None, actor: Any) -> Job:
    rows = Job.objects.select_related("owner")
    if owner is not None:
        rows = rows.filter(owner=owner)
    elif actor is not None:
        rows = access_of(actor).narrowed(rows)
    found = rows.filter(pk=given.pk if isinstance(given, Job) else given).first()
    if found is None:
        raise OptionError("job", "is no job of this owner")
    return found
