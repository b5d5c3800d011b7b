"""Import of iCalendar files: the newest file of a source defines its windows or freezes.

All or nothing. Windows are identified by the source and the UID of their event. Those of other
sources, or made by hand, are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from jobs.calendars import hours
from jobs.calendars.changes import changing
from jobs.calendars.ical import Reading, read
from jobs.calendars.windows import UNCHANGED, apply_change, changed_columns, columns_of
from jobs.core.errors import IcalError, OptionError
from jobs.core.sql import now
from jobs.models import AuditEntry, Calendar, Window, WindowEffect
from jobs.windows import MOST_OPENINGS, Effect, Entry, first_beyond, in_words

SOURCE_LIMIT: Final = 200
_FIELDS: Final = (
    *("effect", "starts", "duration_seconds", "zone"),
    *("rule", "excluded", "added", "reason"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one window by an import, in words: added, changed or removed."""

    verb: str
    window: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The changes of an import, made or previewed.

    `problems` are the lines of events from which their windows differ, each with a sentence.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    problems: tuple[tuple[int, str], ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """The changes to make: rows, each with the entry that it is or becomes."""

    added: list[tuple[Window, Entry]]
    changed: list[tuple[Window, Entry]]
    removed: list[tuple[Window, Entry]]
    unchanged: int

    def report(self, reading: Reading) -> ImportReport:
        verbs = {"added": self.added, "changed": self.changed, "removed": self.removed}
        changes = (
            Change(verb, in_words(entry), entry.reason)
            for verb, rows in verbs.items()
            for _, entry in rows
        )
        return ImportReport(**self.counts(), problems=reading.notes, changes=tuple(changes))

    def counts(self) -> dict[str, Any]:
        return {
            "added": len(self.added),
            "changed": len(self.changed),
            "removed": len(self.removed),
            "unchanged": self.unchanged,
        }


def preview_ical(calendar: Calendar, data: bytes, *, effect: str, source: str) -> ImportReport:
    """Return what `import_ical` would do now; raises as it does."""
    reading = _reading(calendar, data, effect=effect, source=source)
    return _planned(calendar, reading, source=source).report(reading)


def import_ical(
    calendar: Calendar, data: bytes, *, effect: str, source: str, actor: Any = None
) -> ImportReport:
    """Make a calendar's windows of this source equal to a file; return what was done.

    Windows that stay the same, or that a change only narrows, keep their approvals; what may open
    more needs a new one. Times without a zone are in the zone of the calendar's owner; in a shared
    calendar, in UTC. Repeating it changes nothing, and then gates no run again.

    Raises IcalError with the lines that are wrong, OptionError for a source without a name.
    """
    reading = _reading(calendar, data, effect=effect, source=source)
    plan = _planned(calendar, reading, source=source)
    if not (plan.added or plan.changed or plan.removed):
        return plan.report(reading)
    with changing(calendar) as locked:
        # Once more: the rows may have changed before they were locked.
        plan = _planned(locked, reading, source=source)
        report = plan.report(reading)
        kept = _store(plan, actor)
        AuditEntry.write(
            "import windows",
            on=locked,
            actor=actor,
            source=source,
            effect=effect,
            approvals_kept=kept,
            **plan.counts(),
        )
    return report


def _reading(calendar: Calendar, data: bytes, *, effect: str, source: str) -> Reading:
    if not 1 <= len(source) <= SOURCE_LIMIT or "\x00" in source:
        # Windows made by hand have no source.
        raise OptionError("source", f"is text of 1 to {SOURCE_LIMIT} characters")
    if effect not in WindowEffect.values:
        raise OptionError("effect", f"is one of {', '.join(WindowEffect.values)}")
    zone = calendar.owner.zone if calendar.owner is not None else "UTC"
    return read(data, zone=zone, effect=Effect(effect))


def _planned(calendar: Calendar, reading: Reading, *, source: str) -> _Plan:
    """Compare the windows of a file with those of its source as they are now."""
    rows = calendar.windows.filter(source=source).order_by("id").prefetch_related("decisions")
    known = {row.source_uid: row for row in rows}
    gone = [row for row in rows if known[row.source_uid] is not row]
    added, changed, unchanged = [], [], 0
    for found in reading.windows:
        row = known.pop(found.uid, None)
        fields = _fields(found.entry)
        if row is None:
            made = Window(calendar=calendar, source=source, source_uid=found.uid, **fields)
            added.append((made, found.entry))
        elif changed_columns(row, fields):
            changed.append((row, found.entry))
        else:
            unchanged += 1
    gone += known.values()
    _refuse_too_many(calendar, reading, source=source)
    _refuse_to_open(calendar, reading, source=source)
    removed = [(row, hours.entry_of(row)) for row in gone]
    return _Plan(added, changed, removed, unchanged)


def _refuse_to_open(calendar: Calendar, reading: Reading, *, source: str) -> None:
    """Refuse an import that removes all windows: without any, a calendar is always open."""
    if any(found.entry.effect is Effect.WINDOW for found in reading.windows):
        return
    windows = calendar.windows.filter(effect=WindowEffect.WINDOW)
    if windows.filter(source=source).exists() and not windows.exclude(source=source).exists():
        raise IcalError(
            None,
            "would leave the calendar without any window, and so always open; "
            "if that is meant, remove its windows by hand",
        )


def _refuse_too_many(calendar: Calendar, reading: Reading, *, source: str) -> None:
    """Refuse an import after which a calendar would have too many openings."""
    others = hours.windows_of(calendar).exclude(source=source)
    entries = chain(map(hours.safe_entry_of, others), (found.entry for found in reading.windows))
    beyond = first_beyond(entries, after=now())
    if beyond is None:
        return
    line = next((found.line for found in reading.windows if found.entry is beyond), None)
    raise IcalError(
        line,
        f"RRULE: with this event the calendar would have more than {MOST_OPENINGS:,} openings in "
        "62 days, which is the limit; let its events come less often",
    )


def _store(plan: _Plan, actor: Any) -> int:
    """Write the changes; return how many changed windows keep their approval."""
    kept = 0
    for row, _ in plan.added:
        row.request_by(actor, at=now())
    Window.objects.bulk_create([row for row, _ in plan.added], batch_size=500)
    for row, entry in plan.changed:
        changed = changed_columns(row, _fields(entry))
        kept += apply_change(row, changed, actor=actor) == UNCHANGED
    Window.objects.bulk_update(
        [row for row, _ in plan.changed],
        [
            *(*_FIELDS, "revision", "requested_by", "requested_by_token", "earlier_requesters"),
            "requested_at",
        ],
        batch_size=500,
    )
    Window.objects.filter(pk__in=[row.pk for row, _ in plan.removed]).delete()
    return kept


def _fields(entry: Entry) -> dict[str, Any]:
    """Return the columns of an entry that a file gives."""
    columns = columns_of(entry)
    return {name: columns[name] for name in _FIELDS}
