"""Why a run waits, in one sentence. Of other owners it tells only how many are before.

The row has the reason; the fair queue has the run's place and its owner's turn. If the broker is
unavailable, or lacks the run's hint, the place is counted in the rows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from fleet import BrokerUnavailable, MessagePosition
from fleet.contract import NOT_BEGUN
from fleet.steering import SNOOZED
from jobs.calendars.hours import read_with_windows
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.counting import RoundCount, capped_count
from jobs.core.phrases import Phrase, capitalised, counted_phrase, joined, phrase
from jobs.core.sql import now
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Calendar, Owner, Run, Window, WindowPolicy, Worker
from jobs.rollouts.reads import why_not_released
from jobs.runs import dispatch
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
SELECT jobs_calendars(%s, %s, %s, %s) AS calendars, clock_timestamp() AS now
"""


def why_waiting(run: Run) -> str:
    """Say why a run has not started; empty once it has, or has ended."""
    if run.state == State.ADMITTED:
        return phrase("A worker has taken it and starts it next.")
    if run.state in ENDED | ACTIVE:
        return ""
    if run.state == State.SCHEDULED:
        return joined([phrase("Due %(at)s.", at=_moment(run)), *_why_late(run)], " ")
    if run.state == State.RETRYING:
        return joined([_why_retried(run), *_why_late(run)], " ")
    if run.submission_id is not None and (why := why_not_released(run)):
        return why
    if run.state == State.HELD:
        return _why_kept(run) or (
            phrase("Held until %(at)s.", at=_moment(run)) if run.next_at else phrase("Held.")
        )
    return _why_queued(run)


def _why_retried(run: Run) -> Phrase:
    if run.history[-1][2] == SNOOZED:
        return phrase("Its task has snoozed it; the next start is due %(at)s.", at=_moment(run))
    if run.history[-1][2] == NOT_BEGUN:
        return phrase(
            "No process of its worker began it in time, so this attempt does not count; the next"
            " start is due %(at)s.",
            at=_moment(run),
        )
    error = f" ({run.error_type})" if run.error_type else ""
    return phrase(
        "Attempt %(number)s of %(most)s failed%(error)s; the next one is due %(at)s.",
        number=run.attempt_number,
        most=run.last_attempt_number,
        error=error,
        at=_moment(run),
    )


def _why_late(run: Run) -> list[Phrase]:
    """Say why a due run has not been promoted; empty if it is not late."""
    if run.next_at is None or now() - run.next_at < LATE:
        return []
    queue = setting("SYSTEM_QUEUE")
    if not any(queue in worker.queues for worker in Worker.objects.alive()):
        return [
            phrase(
                "No worker takes from queue %(queue)s, so nothing promotes it.", queue=repr(queue)
            )
        ]
    return [
        phrase(
            "Nothing has promoted it: beat does not run, or the workers of %(queue)s are busy.",
            queue=repr(queue),
        )
    ]


def _why_kept(run: Run) -> str:
    """Say why its calendars do not let a run start; empty if they do."""
    if run.window_policy == WindowPolicy.OVERRIDDEN:
        return ""
    [row] = sql.query(_APPLYING, [run.owner_id, run.job_id, run.target_id, run.window_policy])
    if run.window_policy == WindowPolicy.REQUIRED and not row["calendars"]:
        return phrase("It requires a window, and no calendar applies to it.")
    rows = Calendar.objects.filter(id__in=row["calendars"]).order_by("name")
    calendars = [
        NamedHours(calendar.name, hours, tuple(map(_asked, windows)))
        for calendar in rows.prefetch_related(
            "windows__decisions", "windows__requested_by", "windows__requested_by_token"
        )
        for hours, windows in [read_with_windows(calendar)]
    ]
    return why_closed(calendars, now=row["now"], needed=needed_of(run.policy))


def _asked(window: Window) -> Phrase:
    at = f"{window.requested_at:%Y-%m-%d %H:%M %Z}"
    if window.requester is None:
        return phrase("at %(at)s", at=at)
    return phrase("by %(who)s at %(at)s", who=window.requester.get_username(), at=at)


def _why_queued(run: Run) -> str:
    try:
        owner = run.owner
    except Owner.DoesNotExist:
        return phrase("Its owner is gone.")
    if owner.is_paused():
        return _why_paused(owner)
    if owner.calendar_version and (kept := _why_kept(run)):
        return kept
    if run.blocked_by == "lock":
        return _locked(run.lock_key.partition(":")[2])
    if full := _why_full(owner):
        return full
    workers = [worker for worker in Worker.objects.beating() if run.queue in worker.queues]
    if not workers:
        return _no_worker(run.queue)
    if not any(worker.knows(run.task) for worker in workers):
        return phrase(
            "No worker of queue %(queue)s knows task %(task)s.",
            queue=repr(run.queue),
            task=run.task,
        )
    if not any(worker.has_key(run.payload_key) for worker in workers):
        return phrase(
            "Encryption key %(key)s is missing: no worker of queue %(queue)s has it.",
            key=str(run.payload_key),
            queue=repr(run.queue),
        )
    is_silent = False
    try:
        found = _found(run)
    except BrokerUnavailable:
        found, is_silent = None, True
    if not is_silent and all(worker.lacks_redis for worker in workers):
        return _no_worker(run.queue)
    if found is not None:
        return queue_position(found, queue=run.queue, lock=run.lock_key.partition(":")[2])
    newer = Run.objects.filter(id=run.id).first()
    if newer is not None and (newer.state, newer.token) != (run.state, run.token):
        return why_waiting(newer)  # a worker has taken it since `run` was read
    waiting = Run.objects.filter(owner=owner, queue=run.queue, state=State.QUEUED, blocked_by="")
    ahead = capped_count(waiting.filter(queued_at__lt=run.queued_at)) if run.queued_at else 0
    if ahead:
        place = phrase(
            "behind %(count)s of %(owner)s's runs", count=_shown(ahead), owner=owner.slug
        )
    else:
        place = phrase("next of %(owner)s's runs", owner=owner.slug)
    queue = repr(run.queue)
    if is_silent and dispatch.broker().refuses_password:
        return phrase(
            "Redis refuses the password of this process; in queue %(queue)s, %(place)s.",
            queue=queue,
            place=place,
        )
    if is_silent:
        return phrase(
            "Redis does not answer, so no worker is given a run of %(queue)s; %(place)s.",
            queue=queue,
            place=place,
        )
    if run.queue in owners().queues:
        return phrase(
            "Redis has no hint of it yet, the sweep publishes it; in queue %(queue)s, %(place)s.",
            queue=queue,
            place=place,
        )
    return phrase("In queue %(queue)s, %(place)s.", queue=queue, place=place)


def _shown(count: int) -> str:
    return count.words if isinstance(count, RoundCount) else str(count)


def _why_paused(owner: Owner) -> Phrase:
    if owner.paused_until:
        until = f"{owner.paused_until:%Y-%m-%d %H:%M %Z}"
        text = phrase("Owner %(owner)s is paused until %(at)s", owner=owner.slug, at=until)
    else:
        text = phrase("Owner %(owner)s is paused", owner=owner.slug)
    return joined([text, f": {owner.paused_reason}" if owner.paused_reason else "."], "")


def _locked(lock: str) -> Phrase:
    return phrase("Another run holds the lock %(lock)s.", lock=repr(lock))


def _no_worker(queue: str) -> Phrase:
    text = phrase("No worker takes from queue %(queue)s", queue=repr(queue))
    idle = [
        phrase("worker %(worker)s %(why)s", worker=str(worker), why=worker.why_idle())
        for worker in Worker.objects.idle()[:NAMED]
    ]
    if not idle:
        return joined([text, "."], "")
    return phrase("%(text)s: %(idle)s.", text=text, idle=joined(idle, ", "))


def queue_position(found: MessagePosition, *, queue: str, lock: str = "") -> Phrase:
    """Say why a message of a fair queue has not been taken. Pure."""
    owner = found.owner
    if found.state == "leased":
        return phrase("A worker has taken its hint and asks whether it may start.")
    if found.state == "delayed":
        return phrase("Its hint is due in %(span)s.", span=_span(found.due_seconds or 0))
    if found.state == "parked":
        return _locked(lock) if lock else phrase("Another run holds its lock.")
    place = _place(found, queue=queue)
    if found.is_paused:
        return phrase("Owner %(owner)s is paused; %(place)s.", owner=owner, place=place)
    if found.max_running is not None and found.running >= found.max_running:
        return phrase(
            "Owner %(owner)s is at %(running)s of %(most)s; %(place)s.",
            owner=owner,
            running=found.running,
            most=found.max_running,
            place=place,
        )
    if found.rest_seconds is not None:
        return phrase(
            "Owner %(owner)s has had its starts for now, the next in %(rest)s; %(place)s.",
            owner=owner,
            rest=_span(found.rest_seconds),
            place=place,
        )
    before = found.owners_before
    if before is None:
        return joined([capitalised(place), "."], "")
    if before == 0:
        turn = phrase("it is %(owner)s's turn", owner=owner)
    else:
        turn = counted_phrase("1 owner is before it", "%(count)s owners are before it", before)
    return phrase("%(place)s; %(turn)s.", place=capitalised(place), turn=turn)


def _place(found: MessagePosition, *, queue: str) -> Phrase:
    place, ours, of_owner = found.place or 1, found.of_submission, found.of_owner
    whole = phrase(
        "%(owner)s's %(count)s in queue %(queue)s",
        owner=found.owner,
        count=max(of_owner, place),
        queue=repr(queue),
    )
    if ours >= of_owner:
        return phrase("place %(place)s of %(whole)s", place=place, whole=whole)
    # An owner's submissions take turns, so the place among all its runs would say little.
    count = max(ours, place)
    if found.submission:
        part = phrase("its submission's %(count)s", count=count)
    else:
        part = phrase("%(count)s single runs", count=count)
    return phrase("place %(place)s of %(part)s, of %(whole)s", place=place, part=part, whole=whole)


def _why_full(owner: Owner) -> str:
    if owner.max_running is None:
        return ""
    active = Run.objects.active().filter(owner=owner).count()
    if active < owner.max_running:
        return ""
    return phrase(
        "Owner %(owner)s runs %(active)s of at most %(most)s at once.",
        owner=owner.slug,
        active=active,
        most=owner.max_running,
    )


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
        return phrase("a moment")
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:,.0f} min"


def _moment(run: Run) -> str:
    return f"{run.next_at:%Y-%m-%d %H:%M:%S %Z}" if run.next_at else phrase("soon")
