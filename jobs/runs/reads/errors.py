"""Error messages and tracebacks of runs, as far as a caller may see them.

Each caller that sees a run sees the class of its error. The texts often repeat arguments, so only
callers that see arguments see them. Pages, the admin, the API and exports read them here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from jobs.core.phrases import phrase
from jobs.models import Attempt, Run
from jobs.models.access import Access

HIDDEN: Final = phrase(
    "Hidden: you need the permission "
    "“Can see the arguments, the result and the error texts of a run”."
)
"""The text of a page in place of arguments, a result or a message."""


class ErrorTexts(NamedTuple):
    """The texts of an attempt's error; None: the caller may not see them."""

    message: str | None
    traceback: str | None


def message_of(run: Run, access: Access) -> str | None:
    """Return the message of a run's last error; None if the caller may not see it."""
    if not access.sees_arguments(run.owner_id):
        return None
    return run.error_text


def shown(message: str | None) -> str:
    """Return a message as a page shows it: a phrase if the caller may not see it."""
    return HIDDEN if message is None else message


def texts_of(attempt: Attempt, run: Run, access: Access) -> ErrorTexts:
    """Return the texts of an attempt's error; `run` is the attempt's."""
    if not access.sees_arguments(run.owner_id):
        return ErrorTexts(None, None)
    return ErrorTexts(*attempt.texts(run))
