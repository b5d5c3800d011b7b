"""Why a run may not start now, in one sentence: which window, freeze or approval. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from jobs.core.phrases import Phrase, joined, phrase, short_day
from jobs.windows.entries import CalendarHours, Effect, Entry
from jobs.windows.gate import gate_of
from jobs.windows.occurrences import occurrences
from jobs.windows.openings import HORIZON, closes_at, cut_off_of, next_opening
from jobs.windows.wall_clock import shown_at
from jobs.windows.words import length_in_words

_NONE: Final = timedelta(0)
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class NamedHours:
    """A calendar with its name, and for each entry who requested it and when, in words."""

    name: str
    hours: CalendarHours
    asked: tuple[str, ...]


def why_closed(calendars: Sequence[NamedHours], *, now: datetime, needed: timedelta) -> str:
    """Say why a run whose attempt takes `needed` may not start now; empty when it may."""
    gate = gate_of([one.hours for one in calendars], now=now, needed=needed, delay=_NONE)
    if gate.is_open:
        return ""
    closed = [one for one in calendars if closes_at([one.hours], at=now) == now]
    reasons = (
        _frozen(one, now) or _not_approved(one, now) or _not_open_yet(one, now) for one in closed
    )
    found = max(reasons, default=None)
    if gate.opens_at is None:
        return _never(found, needed=length_in_words(needed) if needed else "")
    zone = found.zone if found else _zone(calendars)
    opens = _moment(gate.opens_at, zone)
    if found is None:
        late = _too_late(calendars, now=now, needed=needed)
        return phrase("%(reason)s; the next one is %(opens)s.", reason=late, opens=opens)
    if gate.opens_at > found.until:
        return phrase("%(reason)s; it may start %(opens)s.", reason=found.text, opens=opens)
    return joined([found.text, "."], "")


def _never(found: _Reason | None, *, needed: str) -> Phrase:
    """Say why a run can never start, by the reason that is found."""
    if found is None and needed:
        return phrase("No opening long enough (needs %(needed)s) within a year.", needed=needed)
    if found is None:
        return phrase("No opening within a year.")
    if found.is_never_open:
        return joined([found.text, "."], "")
    if needed:
        return phrase(
            "%(reason)s; no opening long enough (needs %(needed)s) within a year.",
            reason=found.text,
            needed=needed,
        )
    return phrase("%(reason)s; no opening within a year.", reason=found.text)


def _too_late(calendars: Sequence[NamedHours], *, now: datetime, needed: timedelta) -> Phrase:
    """Say why a run may not start near the end of an opening."""
    hours = [one.hours for one in calendars]
    closes, cut_off = closes_at(hours, at=now), cut_off_of(hours)
    if cut_off and closes is not None and now + cut_off >= closes:
        at = _moment(closes, _zone(calendars))
        last = length_in_words(cut_off)
        return phrase(
            "Nothing starts in the last %(last)s before the close, %(at)s", last=last, at=at
        )
    length = length_in_words(needed)
    if cut_off:
        return phrase(
            "What is left of this opening, %(cut)s of which are cut off, is too short for"
            " %(length)s",
            cut=length_in_words(cut_off),
            length=length,
        )
    return phrase("What is left of this opening is too short for %(length)s", length=length)


@dataclass(frozen=True, slots=True, order=True)
class _Reason:
    until: datetime
    text: Phrase
    zone: str
    is_never_open: bool = False


def _frozen(closed: NamedHours, now: datetime) -> _Reason | None:
    ends = [
        (span.end, entry)
        for entry in closed.hours.entries
        if entry.effect is Effect.FREEZE
        for span in occurrences(entry, start=now, end=now + timedelta(microseconds=1))
    ]
    if not ends:
        return None
    until, entry = max(ends, key=lambda one: one[0])
    text = phrase(
        "%(entry)s of calendar %(calendar)s until %(until)s",
        entry=_name(entry),
        calendar=repr(closed.name),
        until=_moment(until, entry.zone),
    )
    return _Reason(until, text, entry.zone)


def _not_approved(closed: NamedHours, now: datetime) -> _Reason | None:
    """Say so when the calendar would open earlier with an entry that is not approved."""
    opens = next_opening([closed.hours], after=now, needed=_NONE)
    first = opens.start if opens else now + HORIZON
    for index, entry in enumerate(closed.hours.entries):
        if entry.effect is Effect.FREEZE or entry.approved is None:
            continue
        agreed = replace(entry, approved=None)
        entries = (*closed.hours.entries[:index], agreed, *closed.hours.entries[index + 1 :])
        would = next_opening([replace(closed.hours, entries=entries)], after=now, needed=_NONE)
        if would is not None and would.start < first:
            text = phrase(
                "%(entry)s of calendar %(calendar)s is not approved",
                entry=_name(entry),
                calendar=repr(closed.name),
            )
            if ended := _approved_until(entry):
                at = _moment(ended, entry.zone)
                text = (
                    phrase("%(text)s: its approval expired %(at)s", text=text, at=at)
                    if ended <= now
                    else phrase("%(text)s: its approval ends before, %(at)s", text=text, at=at)
                )
            elif asked := closed.asked[index]:
                text = phrase("%(text)s: asked for %(asked)s", text=text, asked=asked)
            return _Reason(first, text, entry.zone)
    return None


def _approved_until(entry: Entry) -> datetime | None:
    """Return the end of the approval of all occurrences; None without one."""
    # The approval of one occurrence is a moment.
    return max((one.end for one in entry.approved or () if one.length > _SECOND), default=None)


def _not_open_yet(closed: NamedHours, now: datetime) -> _Reason:
    opens = next_opening([closed.hours], after=now, needed=_NONE)
    if opens is None:
        zone = _zone([closed])
        name = repr(closed.name)
        text = phrase("Calendar %(calendar)s does not open within a year", calendar=name)
        return _Reason(now + HORIZON, text, zone, is_never_open=True)
    for entry in closed.hours.entries:
        if entry.effect is Effect.WINDOW:
            spans = occurrences(entry, start=opens.start, end=opens.start + timedelta(seconds=1))
            if any(span.start <= opens.start for span in spans):
                text = phrase(
                    "%(entry)s of calendar %(calendar)s opens %(at)s",
                    entry=_name(entry),
                    calendar=repr(closed.name),
                    at=_moment(opens.start, entry.zone),
                )
                return _Reason(opens.start, text, entry.zone)
    zone = _zone([closed])
    at = _moment(opens.start, zone)
    text = phrase("Calendar %(calendar)s opens %(at)s", calendar=repr(closed.name), at=at)
    return _Reason(opens.start, text, zone)


def _name(entry: Entry) -> Phrase:
    reason = repr(entry.reason) if entry.reason else ""
    if entry.effect is Effect.FREEZE:
        return phrase("Freeze %(reason)s", reason=reason) if reason else phrase("A freeze")
    return phrase("Window %(reason)s", reason=reason) if reason else phrase("A window")


def _zone(calendars: Sequence[NamedHours]) -> str:
    zones = [entry.zone for one in calendars for entry in one.hours.entries]
    return zones[0] if zones else "UTC"


def _moment(moment: datetime, zone: str) -> Phrase:
    at = shown_at(moment, zone)
    return joined([short_day(at), f"{at:%Y-%m-%d %H:%M} {zone}"], " ")
