"""Windows and freezes: requested, changed and removed, each as one change of its calendar.

A window counts when it is approved as it is now (`approvals.py`); a freeze always counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

from jobs.calendars.changes import changing, too_many_openings
from jobs.calendars.hours import entry_of, has_too_many, safe_entry_of, windows_of
from jobs.core.errors import OptionError, WindowError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.sql import now
from jobs.models import AuditEntry, Calendar, Window
from jobs.models.verbs import Actor
from jobs.windows import Effect, Entry, checked, only_narrows

RULE_LIMIT: Final = 500
SOURCE_LIMITS: Final = {"source": 200, "source_uid": 500}
MATERIAL: Final = frozenset(
    {
        *("effect", "starts", "duration_seconds", "zone", "rule", "excluded", "added"),
        *("valid_from", "valid_until"),
    }
)
"""Columns that say when runs may start: a change of them may need a new approval."""
UNCHANGED: Final = "unchanged: the change only narrows the window"
ASKED_AGAIN: Final = "asked again"
FIELDS: Final = {one.name for one in fields(Entry)} - {"approved", "approved_starts"}


def request_window(
    calendar: Calendar,
    *,
    effect: str = Effect.WINDOW,
    starts: datetime,
    duration: timedelta,
    zone: str,
    rule: str = "",
    excluded: Collection[datetime] = (),
    added: Collection[datetime] = (),
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
    reason: str = "",
    actor: Actor = None,
    source: str = "",
    source_uid: str = "",
) -> Window:
    """Add a window or freeze to a calendar; return it.

    Times are naive, by the clock of `zone`; `valid_from` and `valid_until` are aware. Raises
    WindowError with the field and its limit.
    """
    entry = Entry(
        _effect(effect),
        starts=starts,
        duration=duration,
        zone=zone,
        rule=rule,
        excluded=_dates(excluded),
        added=_dates(added),
        valid_from=valid_from,
        valid_until=valid_until,
        reason=reason,
    )
    columns = _columns(entry)
    came_from = {"source": source, "source_uid": source_uid}
    for name, text in came_from.items():
        _refuse_text(name, text, most=SOURCE_LIMITS[name])
    with changing(calendar) as locked:
        window = Window(calendar=locked, **columns, **came_from)
        window.request_by(actor, at=now())
        window.save()
        AuditEntry.write(
            "request window",
            on=window,
            actor=actor,
            reason=window.reason,
            calendar=locked.name,
            after=_shown(columns),
        )
    return window


def change_window(window: Window, *, actor: Actor = None, **changes: Any) -> Window:
    """Change some fields of `request_window`; return the window as it is now.

    A change that only narrows an approved window keeps its approval. Any other change of times is a
    new request, by the actor, and earlier approvals no longer count. While the window has not been
    approved, those who asked for it or changed it before are requesters, too. Raises WindowError.
    """
    _refuse_unknown(changes)
    with changing(window.calendar):
        before = Window.objects.select_related("calendar").get(pk=window.pk)
        changed = changed_columns(before, _columns(_with(before, changes)))
        if not changed:
            return before
        old = {name: getattr(before, name) for name in changed}
        approval = apply_change(before, changed, actor=actor)
        before.save()
        AuditEntry.write(
            "change window",
            on=before,
            actor=actor,
            reason=before.reason,
            calendar=before.calendar.name,
            revision=before.revision,
            before=_shown(old),
            after=_shown(changed),
            **({"approval": approval} if approval else {}),
        )
    return before


def check_amount(calendar: Calendar, entry: Entry, *, instead_of: int | None = None) -> None:
    """Raise WindowError when a calendar would get too many openings with one more entry.

    `instead_of` is the key of the window that the entry replaces, if any.
    """
    others = list(windows_of(calendar))
    rest = [window for window in others if window.pk != instead_of]
    if has_too_many(rest, entry) and not has_too_many(others):
        raise too_many_openings(calendar)


def apply_change(window: Window, changed: Mapping[str, Any], *, actor: Any) -> str:
    """Set columns of a window, for the caller to save; return what becomes of its approval.

    Empty when it needs no approval, or when runs may start at the same times as before.
    """
    before = safe_entry_of(window)
    for name, value in changed.items():
        setattr(window, name, value)
    if not MATERIAL & changed.keys():
        return ""
    if before.approved and only_narrows(before, safe_entry_of(window)):
        return UNCHANGED
    window.revision += 1
    # Until a window is approved, its earlier requesters stay requesters.
    window.request_by(actor, at=now(), is_added=not before.approved)
    return "" if safe_entry_of(window).approved is None else ASKED_AGAIN


def delete_window(window: Window, *, actor: Actor = None, reason: str = "") -> None:
    """Delete a window or freeze with its decisions, if it is still there.

    Raises OptionError for the last window: without it, the calendar would always be open.
    """
    with changing(window.calendar):
        found = Window.objects.select_related("calendar").filter(pk=window.pk).first()
        if found is None:
            return
        AuditEntry.write(
            "delete window",
            on=found,
            actor=actor,
            reason=reason,
            calendar=found.calendar.name,
            before=_shown(_columns(replace(entry_of(found), approved=None))),
        )
        found.delete()


def _with(window: Window, changes: Mapping[str, Any]) -> Entry:
    """Return the entry of a window with other fields, unchecked."""
    given = dict(changes)
    if "effect" in given:
        given["effect"] = _effect(given["effect"])
    for name in ("excluded", "added"):
        if name in given:
            given[name] = _dates(given[name])
    return replace(entry_of(window), approved=None, **given)


def _columns(entry: Entry) -> dict[str, Any]:
    """Check an entry; return the columns of its row."""
    _refuse_text("reason", entry.reason, most=REASON_LIMIT)
    entry = checked(entry)
    if len(entry.rule) > RULE_LIMIT:
        raise WindowError("rule", f"is text of at most {RULE_LIMIT} characters")
    if entry.duration % timedelta(seconds=1):
        raise WindowError("duration", "has fractions of a second")
    return columns_of(entry)


def columns_of(entry: Entry) -> dict[str, Any]:
    """Return a checked entry as the columns of its row."""
    return {
        "effect": str(entry.effect),
        "starts": entry.starts.isoformat(),
        "duration_seconds": int(entry.duration.total_seconds()),
        "zone": entry.zone,
        "rule": entry.rule,
        "excluded": [wall.isoformat() for wall in entry.excluded],
        "added": [wall.isoformat() for wall in entry.added],
        "valid_from": entry.valid_from,
        "valid_until": entry.valid_until,
        "reason": entry.reason,
    }


def changed_columns(window: Window, columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value != getattr(window, name)}


def _shown(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns for JSON; instead of many dates, their number."""
    shown = dict(columns)
    for name in ("valid_from", "valid_until"):
        if shown.get(name) is not None:
            shown[name] = shown[name].isoformat()
    for name in ("excluded", "added"):
        if len(shown.get(name, ())) > 100:
            shown[name] = f"{len(shown[name]):,} dates"
    return shown


def _effect(given: Any) -> Any:
    """Return the effect of that name; another value is refused later, with the other fields."""
    return Effect(given) if given in set(Effect) else given


def _dates(given: Any) -> Any:
    """Return dates as a tuple; another value is refused later, with the other fields."""
    return tuple(given) if isinstance(given, (list, set, frozenset)) else given


def _refuse_text(field: str, value: Any, *, most: int) -> None:
    try:
        refuse_text(field, value, most=most)
    except OptionError as error:
        raise WindowError(field, error.problem) from None


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    for name in changes.keys() - FIELDS:
        near = get_close_matches(name, FIELDS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise WindowError(name[:60], f"is no field of a window{hint}")
