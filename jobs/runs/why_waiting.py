"""Why a run waits, in one sentence. Of other owners it tells only how many are before.

The row has the reason; the fair queue has the run's place and its owner's turn. If the broker is
unavailable, or lacks the run's hint, the place is counted in the rows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from fleet import BrokerUnavailable, MessagePosition
from jobs.calendars.hours import read_with_windows
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.sql import now
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Calendar, Owner, Run, Window, WindowPolicy, Worker
from jobs.runs.dispatch import owners
from jobs.runs.storage import needed_of
from jobs.windows import NamedHours, why_closed

LATE: Final = timedelta(seconds=10)
"""How long a run may be overdue before a cause is given; promotion runs each second."""
MOMENT_SECONDS: Final = 0.05
"""A shorter span is "a moment": it would be rounded to zero."""
NAMED: Final = 3
"""Most idle workers that are named."""
_APPLYING: Final = """
SELECT jobs_calendars(%s, %s, %s) AS calendars, clock_timestamp() AS now
"""


def why_waiting(run: Run) -> str:
    """Say why a run has not started; empty once it has, or has ended."""
    if run.state == State.ADMITTED:
        return "A worker has taken it and starts it next."
    if run.state in ENDED | ACTIVE:
        return ""
    if run.state == State.SCHEDULED:
        return f"Due {_moment(run)}.{_why_late(run)}"
    if run.state == State.RETRYING:
        error = f" ({run.error_type})" if run.error_type else ""
        tried = f"Attempt {run.attempt_number} of {run.last_attempt_number} failed{error}"
        return f"{tried}; the next one is due {_moment(run)}.{_why_late(run)}"
    if run.state == State.HELD:
        return _why_kept(run) or (f"Held until {_moment(run)}." if run.next_at else "Held.")
    return _why_queued(run)


def _why_late(run: Run) -> str:
    """Say why a due run has not been promoted; empty if it is not late."""
    if run.next_at is None or now() - run.next_at < LATE:
        return ""
    queue = setting("SYSTEM_QUEUE")
    if not any(queue in worker.queues for worker in Worker.objects.alive()):
        return f" No worker takes from queue {queue!r}, so nothing promotes it."
    return f" Nothing has promoted it: beat does not run, or the workers of {queue!r} are busy."


def _why_kept(run: Run) -> str:
    """Say why its calendars do not let a run start; empty if they do."""
    if run.window_policy == WindowPolicy.OVERRIDDEN:
        return ""
    [row] = sql.query(_APPLYING, [run.owner_id, run.job_id, run.target_id])
    if run.window_policy == WindowPolicy.REQUIRED and not row["calendars"]:
        return "It requires a window, and no calendar applies to it."
    rows = Calendar.objects.filter(id__in=row["calendars"]).order_by("name")
    calendars = [
        NamedHours(calendar.name, hours, tuple(map(_asked, windows)))
        for calendar in rows.prefetch_related(
            "windows__decisions", "windows__requested_by", "windows__requested_by_token"
        )
        for hours, windows in [read_with_windows(calendar)]
    ]
    return why_closed(calendars, now=row["now"], needed=needed_of(run.policy))


def _asked(window: Window) -> str:
    who = f"by {window.requester.get_username()} " if window.requester else ""
    return f"{who}at {window.requested_at:%Y-%m-%d %H:%M %Z}"


def _why_queued(run: Run) -> str:
    try:
        owner = run.owner
    except Owner.DoesNotExist:
        return "Its owner is gone."
    if owner.is_paused():
        until = f" until {owner.paused_until:%Y-%m-%d %H:%M %Z}" if owner.paused_until else ""
        reason = f": {owner.paused_reason}" if owner.paused_reason else "."
        return f"Owner {owner.slug} is paused{until}{reason}"
    if owner.calendar_version and (kept := _why_kept(run)):
        return kept
    if run.blocked_by == "lock":
        return f"Another run holds the lock {run.lock_key.partition(':')[2]!r}."
    active = Run.objects.active().filter(owner=owner).count()
    if owner.max_running is not None and active >= owner.max_running:
        return f"Owner {owner.slug} runs {active} of at most {owner.max_running} at once."
    workers = [worker for worker in Worker.objects.alive() if run.queue in worker.queues]
    if not workers:
        idle = [f"worker {worker} {worker.why_idle()}" for worker in Worker.objects.idle()[:NAMED]]
        return f"No worker takes from queue {run.queue!r}{': ' if idle else ''}{', '.join(idle)}."
    if not any(worker.knows(run.task) for worker in workers):
        return f"No worker of queue {run.queue!r} knows task {run.task}."
    is_silent = False
    try:
        found = _found(run)
    except BrokerUnavailable:
        found, is_silent = None, True
    if found is not None:
        return queue_position(found, queue=run.queue, lock=run.lock_key.partition(":")[2])
    waiting = Run.objects.filter(owner=owner, queue=run.queue, state=State.QUEUED, blocked_by="")
    ahead = waiting.filter(queued_at__lt=run.queued_at).count() if run.queued_at else 0
    place = f"behind {ahead} of {owner.slug}'s runs" if ahead else f"next of {owner.slug}'s runs"
    if is_silent:
        return f"Redis does not answer, so no worker is given a run of {run.queue!r}; {place}."
    return f"In queue {run.queue!r}, {place}."


def queue_position(found: MessagePosition, *, queue: str, lock: str = "") -> str:
    """Say why a message of a fair queue has not been taken. Pure."""
    owner = found.owner
    if found.state == "leased":
        return "A worker has taken its hint and asks whether it may start."
    if found.state == "delayed":
        return f"Its hint is due in {_span(found.due_seconds or 0)}."
    if found.state == "parked":
        return f"Another run holds the lock {lock!r}." if lock else "Another run holds its lock."
    place = _place(found, queue=queue)
    if found.is_paused:
        return f"Owner {owner} is paused; {place}."
    if found.max_running is not None and found.running >= found.max_running:
        return f"Owner {owner} is at {found.running} of {found.max_running}; {place}."
    if found.rest_seconds is not None:
        rest = _span(found.rest_seconds)
        return f"Owner {owner} has had its starts for now, the next in {rest}; {place}."
    if found.owners_before is None:
        return f"{place[0].upper()}{place[1:]}."
    before = found.owners_before
    whose = {0: f"it is {owner}'s turn", 1: "1 owner is before it"}
    return (
        f"{place[0].upper()}{place[1:]}; {whose.get(before, f'{before:,} owners are before it')}."
    )


def _place(found: MessagePosition, *, queue: str) -> str:
    place, ours, of_owner = found.place or 1, found.of_submission, found.of_owner
    whole = f"{found.owner}'s {max(of_owner, place):,} in queue {queue!r}"
    if ours >= of_owner:
        return f"place {place:,} of {whole}"
    # An owner's submissions take turns, so the place among all its runs would say little.
    count = f"{max(ours, place):,}"
    part = f"its submission's {count}" if found.submission else f"{count} single runs"
    return f"place {place:,} of {part}, of {whole}"


def _found(run: Run) -> MessagePosition | None:
    """Return the hint's position in a fair queue, or None; raise BrokerUnavailable."""
    known = owners()
    if run.queue not in known.queues:
        return None
    return known.find(
        run.queue, f"{run.id}:{run.token + 1}", timeout=setting("PUBLISH_TIMEOUT_SECONDS")
    )


def _span(seconds: float) -> str:
    if seconds < MOMENT_SECONDS:
        return "a moment"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:,.0f} min"


def _moment(run: Run) -> str:
    return f"{run.next_at:%Y-%m-%d %H:%M:%S %Z}" if run.next_at else "soon"
