"""When may something start? Pure: the time is passed in, and nothing here knows Django.

A window is an `entries.Entry`. `validation` checks it, `occurrences` computes its spans in UTC,
`openings` combines calendars, `gate` answers for one run. Changes of a zone's clock are handled in
`wall_clock`. CONTRIBUTING.md lists the files that a new option of a window touches.
"""

from jobs.core.errors import WindowError
from jobs.windows.amount import MOST_OPENINGS, first_beyond
from jobs.windows.approval import DecisionFact, approved_spans, start_of
from jobs.windows.entries import CalendarHours, Effect, Entry, Span
from jobs.windows.gate import Gate, gate_of
from jobs.windows.narrowing import only_narrows
from jobs.windows.occurrences import occurrences
from jobs.windows.openings import closes_at, is_open, next_opening, open_minutes, open_spans
from jobs.windows.validation import checked
from jobs.windows.why_closed import NamedHours, why_closed
from jobs.windows.words import in_words, notes

__all__ = [
    "MOST_OPENINGS",
    "CalendarHours",
    "DecisionFact",
    "Effect",
    "Entry",
    "Gate",
    "NamedHours",
    "Span",
    "WindowError",
    "approved_spans",
    "checked",
    "closes_at",
    "first_beyond",
    "gate_of",
    "in_words",
    "is_open",
    "next_opening",
    "notes",
    "occurrences",
    "only_narrows",
    "open_minutes",
    "open_spans",
    "start_of",
    "why_closed",
]
