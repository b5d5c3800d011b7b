"""What happens to a rollout next. Pure: the counts and the time are passed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.rollouts.waves import Limit


class Next(StrEnum):
    STOP = "stop"
    WAIT = "wait"
    """The released waves have ended: the next one waits for its time or for an approval."""
    RELEASE = "release"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The runs of a wave that is released."""

    number: int
    size: int
    failed: int
    """Failed runs, without those that an operator has accepted."""
    ended: int
    """Ended runs, without those that had ended when an operator continued.

    Counted only if `failed` may be too many, and up to as many as then allow them.
    """
    is_open: bool
    """Some run of the wave has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A rollout that has not ended."""

    released: Sequence[Released]
    has_open: bool
    """Some run of its waves, released or not, has not ended."""
    is_stopped: bool
    """Or paused."""
    is_waiting: bool
    """The waves have ended before; a late failure stops the rollout all the same."""
    limit: Limit | None
    between: timedelta | None
    needs_approval: bool
    next_at: datetime | None
    now: datetime

    @property
    def over_limit(self) -> Released | None:
        """The first wave of which too many runs have failed."""
        if self.limit is None:
            return None
        return next((wave for wave in self.released if _is_passed(self.limit, wave)), None)


def decide(facts: Facts) -> Next | None:
    """Return what to do; None: nothing yet."""
    if not facts.has_open:
        return Next.END
    if facts.is_stopped:
        return None
    if facts.over_limit is not None:
        return Next.STOP
    if any(wave.is_open for wave in facts.released):
        return None
    if facts.is_waiting:
        is_due = facts.next_at is not None and facts.next_at <= facts.now
        return Next.RELEASE if is_due else None
    if facts.needs_approval or facts.between is not None:
        return Next.WAIT
    return Next.RELEASE


def _is_passed(limit: Limit, wave: Released) -> bool:
    return limit.is_passed(failed=wave.failed, ended=wave.ended, size=wave.size)
