"""Calendars: windows, approvals, openings, and whether a run may start now.

`windows`, `approvals` and `changes` write calendars; `gate` decides for runs. `hours` turns rows
into the values of `jobs/windows`. `reads` computes what pages show: `reads/month.py` a month.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobs.calendars.approvals import approve, reject, revoke
    from jobs.calendars.changes import attach, delete, detach
    from jobs.calendars.ical_import import import_ical
    from jobs.calendars.windows import change_window, delete_window, request_window

__all__ = [
    "approve",
    "attach",
    "change_window",
    "delete",
    "delete_window",
    "detach",
    "import_ical",
    "reject",
    "request_window",
    "revoke",
]

_WINDOWS = ("change_window", "delete_window", "request_window")
_HOMES = {
    **dict.fromkeys(("approve", "reject", "revoke"), "jobs.calendars.approvals"),
    **dict.fromkeys(("attach", "delete", "detach"), "jobs.calendars.changes"),
    **dict.fromkeys(_WINDOWS, "jobs.calendars.windows"),
    "import_ical": "jobs.calendars.ical_import",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    from jobs.core.faces import face

    __getattr__, __dir__ = face(__name__, _HOMES)
