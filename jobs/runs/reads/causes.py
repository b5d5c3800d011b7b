"""The causes in the history of a run, for readers of other languages.

Rows store English texts, or the reason that a person gave, which stays as it is.
"""

from __future__ import annotations

from typing import Final

from jobs.core.phrases import phrase

KNOWN: Final = {
    str(cause): cause
    for cause in (
        phrase("answer lost"),
        phrase("calendar changed"),
        phrase("cancelled"),
        phrase("cancelled by its task"),
        phrase("child lost"),
        phrase("deadline passed"),
        phrase("discarded by its task"),
        phrase("due"),
        phrase("due time changed"),
        phrase("failed by an operator"),
        phrase("no window within a year"),
        phrase("not begun"),
        phrase("retry"),
        phrase("snoozed"),
        phrase("stored outcome"),
        phrase("terminated"),
        phrase("time limit"),
        phrase("unknown task"),
        phrase("unreadable"),
        phrase("wave not released"),
        phrase("window closed"),
        phrase("worker lost"),
        phrase("worker lost before the start"),
    )
}
"""Every cause that the code writes, but for errors and that of an override."""
_OVERRIDDEN: Final = "windows overridden by "


def cause_in_words(cause: str) -> str:
    """Return a stored cause as a phrase if the code has written it; else as it is."""
    who, colon, reason = cause.removeprefix(_OVERRIDDEN).partition(": ")
    if cause.startswith(_OVERRIDDEN) and colon:
        return phrase("windows overridden by %(who)s: %(reason)s", who=who, reason=reason)
    return KNOWN.get(cause, cause)
