"""jobs/rollouts/deciding.py: what happens next, by the counts of a wave and the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.rollouts.deciding import Facts, Next, decide
from jobs.rollouts.waves import Limit

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ENDED: dict[str, Any] = {"is_open": False, "ended": 10}


@pytest.mark.parametrize(
    ("given", "following"),
    [
        ({}, None),
        ({"failed": 1}, Next.STOP),
        ({"failed": 1, "limit": None}, None),
        ({"failed": 1, "limit": Limit(count=1)}, None),
        (ENDED, Next.RELEASE),
        ({**ENDED, "is_last": True}, Next.END),
        ({**ENDED, "failed": 1, "is_last": True}, Next.STOP),
        ({**ENDED, "between": MINUTE}, Next.WAIT),
        ({**ENDED, "needs_approval": True}, Next.WAIT),
        ({**ENDED, "needs_approval": True, "is_waiting": True}, None),
        ({**ENDED, "between": MINUTE, "is_waiting": True, "next_at": NOW + MINUTE}, None),
        ({**ENDED, "between": MINUTE, "is_waiting": True, "next_at": NOW}, Next.RELEASE),
        # A run of a wave that has ended is retried, and fails again.
        ({**ENDED, "is_waiting": True, "next_at": NOW, "failed": 1}, Next.STOP),
        ({"is_waiting": True, "next_at": NOW}, None),
    ],
)
def test_what_is_next(given: dict[str, Any], following: Next | None) -> None:
    """A wave runs until all its runs have ended, or too many have failed."""
    facts: dict[str, Any] = {
        "failed": 0,
        "ended": 3,
        "size": 10,
        "is_open": True,
        "is_last": False,
        "is_waiting": False,
        "limit": Limit(count=0),
        "between": None,
        "needs_approval": False,
        "next_at": None,
        "now": NOW,
    }
    assert decide(Facts(**{**facts, **given})) is following
