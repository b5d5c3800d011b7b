"""jobs/rollouts/deciding.py: what happens next, by the counts of a wave and the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.rollouts.deciding import Facts, Next, Released, decide
from jobs.rollouts.waves import Limit

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def wave(*, number: int = 1, failed: int = 0, ended: int = 3) -> Released:
    """A wave of 10 runs."""
    return Released(number=number, size=10, failed=failed, ended=ended, is_open=ended < 10)


DONE = {"released": [wave(ended=10)]}
EARLY = [wave(), wave(number=2, ended=10)]


@pytest.mark.parametrize(
    ("given", "following"),
    [
        ({}, None),
        ({"released": [wave(failed=1)]}, Next.STOP),
        ({"released": [wave(failed=1)], "limit": None}, None),
        ({"released": [wave(failed=1)], "limit": Limit(count=1)}, None),
        ({"released": [wave(failed=1)], "is_stopped": True}, None),
        (DONE, Next.RELEASE),
        ({**DONE, "has_open": False}, Next.END),
        ({"released": [wave(failed=1, ended=10)], "has_open": False}, Next.END),
        ({**DONE, "has_open": False, "is_stopped": True}, Next.END),
        ({**DONE, "between": MINUTE}, Next.WAIT),
        ({**DONE, "needs_approval": True}, Next.WAIT),
        ({**DONE, "needs_approval": True, "is_waiting": True}, None),
        ({**DONE, "between": MINUTE, "is_waiting": True, "next_at": NOW + MINUTE}, None),
        ({**DONE, "between": MINUTE, "is_waiting": True, "next_at": NOW}, Next.RELEASE),
        # A run of a wave that has ended is retried, and fails again.
        (
            {"released": [wave(failed=1, ended=10)], "is_waiting": True, "next_at": NOW},
            Next.STOP,
        ),
        ({"is_waiting": True, "next_at": NOW}, None),
        # The second wave was released before the first had ended.
        ({"released": EARLY}, None),
        ({"released": [wave(failed=1), EARLY[1]]}, Next.STOP),
        ({"released": [EARLY[0], wave(number=2, failed=1)]}, Next.STOP),
    ],
)
def test_what_is_next(given: dict[str, Any], following: Next | None) -> None:
    """Waves run until all their runs have ended, or too many of one have failed."""
    facts: dict[str, Any] = {
        "released": [wave()],
        "has_open": True,
        "is_stopped": False,
        "is_waiting": False,
        "limit": Limit(count=0),
        "between": None,
        "needs_approval": False,
        "next_at": None,
        "now": NOW,
    }
    assert decide(Facts(**{**facts, **given})) is following
