"""What happens to a rollout next. Pure: the counts and the time are passed in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.rollouts.waves import Limit


class Next(StrEnum):
    STOP = "stop"
    WAIT = "wait"
    """The wave has ended: the next one waits for its time or for an approval."""
    RELEASE = "release"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A rollout that is not stopped, and the runs of its newest released wave."""

    failed: int
    """Failed runs, without those that an operator has accepted."""
    ended: int
    """Ended runs, without those that had ended when an operator continued."""
    size: int
    is_open: bool
    """Some run of the wave has not ended."""
    is_last: bool
    is_waiting: bool
    """The wave has ended before; a late failure stops the rollout all the same."""
    limit: Limit | None
    between: timedelta | None
    needs_approval: bool
    next_at: datetime | None
    now: datetime


def decide(facts: Facts) -> Next | None:
    """Return what to do; None: nothing yet."""
    limit = facts.limit
    if limit is not None and limit.is_passed(
        failed=facts.failed, ended=facts.ended, size=facts.size
    ):
        return Next.STOP
    if facts.is_open:
        return None
    if facts.is_last:
        return Next.END
    if facts.is_waiting:
        is_due = facts.next_at is not None and facts.next_at <= facts.now
        return Next.RELEASE if is_due else None
    if facts.needs_approval or facts.between is not None:
        return Next.WAIT
    return Next.RELEASE
