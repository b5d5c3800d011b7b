"""What endpoints and mail subscriptions share: checks, rights, changes and the audit."""

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
from jobs.models import ApiToken, AuditEntry, EventType, Job, Owner, Scope
from jobs.models.access import access_of
from jobs.models.notice import Interest
from jobs.models.token import columns_of
from jobs.system.notices import listening

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


def sees_runs(actor: Any, owner_id: int | None) -> bool:
    """Say whether a user or token may see the runs of an owner (None: of all)."""
    found = access_of(actor)
    return found.has(Scope.READ, owner_id) and found.permits("jobs.view_run")


def sees_details(maker: Any, owner_id: int | None) -> bool:
    """Say whether a user or token may see arguments and results of an owner (None: of all)."""
    return maker is not None and access_of(maker).sees_arguments(owner_id)  # type: ignore[arg-type]


def refuse_unseen(actor: Any, owner: Owner | None, *, has_details: bool = False) -> None:
    """Raise AccessDenied unless the actor may see what is told of an owner, or of all (None).

    The system, an actor None, may tell of runs, but not of their details.
    """
    owner_id, whose = (owner.pk, owner.slug) if owner else (None, "the whole installation")
    if actor is not None and not sees_runs(actor, owner_id):
        raise AccessDenied("read (to see runs, with jobs.view_run)", whose)
    if has_details and not sees_details(actor, owner_id):
        raise AccessDenied("operate (to see arguments and results)", whose)


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


def made_by(actor: Any) -> dict[str, Any]:
    """Return the fields that say who made a row."""
    has_maker = actor is not None
    return {"has_maker": has_maker, **columns_of(actor, "created_by", "created_by_token")}


def change(row: Interest, fields: Mapping[str, Any], *, actor: Any, reason: str) -> list[str]:
    """Set the fields of a row that differ; return their names.

    If the row may send more than before, or elsewhere, the actor becomes its maker.
    """
    changed = [name for name, value in fields.items() if getattr(row, name) != value]
    if not changed:
        return []
    for name in changed:
        setattr(row, name, fields[name])
    if _sends_other(row, changed):
        refuse_unseen(actor, row.owner, has_details=getattr(row, "has_details", False))
        for name, value in made_by(actor).items():
            setattr(row, name, value)
    if "is_active" in changed:
        row.disabled_at = None if row.is_active else now()
        row.disabled_reason = "" if row.is_active else (reason or "by an operator")
    switch = "enable" if row.is_active else "disable"
    word = switch if changed == ["is_active"] else "change"
    audit(word, row, actor, reason=reason, changed=changed)
    row.save()
    listening.sync_all()
    return changed


def audit(word: str, row: Interest, actor: Any, *, reason: str = "", **details: Any) -> None:
    """Add an entry of the audit about an endpoint or a subscription; it names the row."""
    action = f"{word} {row._meta.verbose_name_raw}"
    AuditEntry.write(action, on=row, actor=actor, reason=reason, name=row.name, **details)


def _sends_other(row: Interest, changed: Collection[str]) -> bool:
    """Say whether a change may send more than before, or elsewhere.

    A name, a stop, and an end of details do not.
    """
    harmless = {"name"} if row.is_active else {"name", "is_active"}
    if not getattr(row, "has_details", False):
        harmless.add("has_details")
    return not harmless.issuperset(changed)


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
