"""A diagnosis as text and as JSON, and the exit status. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from django.core import checks
from django.core.checks import CheckMessage

from fleet import counted
from jobs.client.terminal import printable
from jobs.management.doctor.examination import Diagnosis

SOUND: Final = 0
BROKEN: Final = 1
WARNED: Final = 2

Style = Callable[[str], str]


def exit_status(found: Diagnosis) -> int:
    """Return 0 if nothing is wrong, 1 if something is broken, 2 if there are only warnings."""
    if found.broken:
        return BROKEN
    return WARNED if found.warnings else SOUND


def as_lines(found: Diagnosis, *, bad: Style, warn: Style, good: Style) -> Iterator[str]:
    """Yield the lines of a diagnosis: a summary, then two lines for each finding."""
    made = f"{counted(found.check_count, 'check')} in {found.seconds:.1f} s"
    also = f"; {counted(len(found.warnings), 'warning')}" if found.warnings else ""
    if found.broken:
        yield bad(f"Broken: {counted(len(found.broken), 'thing')}{also} ({made})")
    else:
        yield (warn if found.warnings else good)(f"Nothing is broken: {made}{also}")
    for message in found.messages:
        style = {BROKEN: bad, WARNED: warn}.get(_status_of(message), str)
        yield f"{style(level_of(message) + ':')} {message.id}  {printable(str(message.msg))}"
        if message.hint:
            yield f"    do: {printable(str(message.hint))}"


def as_json(found: Diagnosis) -> str:
    """Return a diagnosis as one JSON object."""
    return json.dumps(
        {
            "status": exit_status(found),
            "checks": found.check_count,
            "seconds": round(found.seconds, 2),
            "findings": [
                {
                    "id": message.id,
                    "level": level_of(message),
                    "text": str(message.msg),
                    "fix": str(message.hint or ""),
                }
                for message in found.messages
            ],
        }
    )


def level_of(message: CheckMessage) -> str:
    """Return "broken", "warning" or "note"."""
    return {BROKEN: "broken", WARNED: "warning"}.get(_status_of(message), "note")


def _status_of(message: CheckMessage) -> int:
    if message.level >= checks.ERROR:
        return BROKEN
    return WARNED if message.level >= checks.WARNING else SOUND
