"""Choices of filters of runs: groups of states, and ages; the same in the admin and in pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.core.states import ACTIVE, ENDED, State

AGES: Final = {
    "1h": (timedelta(hours=1), _("last hour")),
    "1d": (timedelta(days=1), _("last 24 hours")),
    "7d": (timedelta(days=7), _("last 7 days")),
    "30d": (timedelta(days=30), _("last 30 days")),
}
GROUPS: Final = {
    "open": (frozenset(State) - ENDED, _("not ended")),
    "active": (ACTIVE, _("with a worker")),
    "problem": (frozenset({State.FAILED, State.EXPIRED, State.RETRYING}), _("with trouble")),
}
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
