"""The words of states."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.core.states import State

WORDS: Final = {
    State.SCHEDULED: _("scheduled"),
    State.HELD: _("held"),
    State.QUEUED: _("queued"),
    State.ADMITTED: _("admitted"),
    State.RUNNING: _("running"),
    State.CANCELLING: _("cancelling"),
    State.RETRYING: _("retrying"),
    State.SUCCEEDED: _("succeeded"),
    State.FAILED: _("failed"),
    State.CANCELLED: _("cancelled"),
    State.EXPIRED: _("expired"),
}
"""The word of each state in the reader's language."""


def word_of(state: str) -> str:
    """Return the word of a state in the reader's language; other texts as they are."""
    return str(WORDS[State(state)]) if state in WORDS else state
