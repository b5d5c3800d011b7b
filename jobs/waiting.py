"""Why a run waits, in one sentence. Tells nothing of other owners' runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.states import ACTIVE, ENDED, State

if TYPE_CHECKING:
    from jobs.models import Run


def why_waiting(run: Run) -> str:
    """Say why a run has not started; empty once it has, or has ended."""
    if run.state in ENDED or run.state in ACTIVE - {State.ADMITTED}:
        return ""
    if run.state == State.ADMITTED:
        return "A worker has taken it and starts it next."
    if run.state == State.SCHEDULED:
        return f"Due {_moment(run)}."
    if run.state == State.RETRYING:
        error = f" ({run.error_type})" if run.error_type else ""
        tried = f"Attempt {run.attempt_count} of {run.max_attempts} failed{error}"
        return f"{tried}; the next one is due {_moment(run)}."
    if run.state == State.HELD:
        return f"Held until {_moment(run)}." if run.next_at else "Held."
    return _why_queued(run)


def _why_queued(run: Run) -> str:
    from jobs.models import Owner, Run, Worker

    try:
        owner = run.owner
    except Owner.DoesNotExist:
        return "Its owner is gone."
    if owner.is_paused():
        until = f" until {owner.paused_until:%Y-%m-%d %H:%M %Z}" if owner.paused_until else ""
        reason = f": {owner.paused_reason}" if owner.paused_reason else "."
        return f"Owner {owner.slug} is paused{until}{reason}"
    if run.blocked_by == "lock":
        return f"Another run holds the lock {run.lock_key.partition(':')[2]!r}."
    active = Run.objects.active().filter(owner=owner).count()
    if owner.max_running is not None and active >= owner.max_running:
        return f"Owner {owner.slug} runs {active} of at most {owner.max_running} at once."
    if not any(run.queue in worker.queues for worker in Worker.objects.alive()):
        return f"No worker takes from queue {run.queue!r}."
    waiting = Run.objects.filter(owner=owner, queue=run.queue, state=State.QUEUED, blocked_by="")
    ahead = waiting.filter(queued_at__lt=run.queued_at).count() if run.queued_at else 0
    place = f"behind {ahead} of {owner.slug}'s runs" if ahead else f"next of {owner.slug}'s runs"
    return f"In queue {run.queue!r}, {place}."


def _moment(run: Run) -> str:
    return f"{run.next_at:%Y-%m-%d %H:%M:%S %Z}" if run.next_at else "soon"
