"""Failing and late jobs: what has changed since the last look becomes events.

An alarm's row is the memory: it is made in the transaction that stores the events, so that a
change is told once, also when the system worker is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Final

from jobs.core.sql import now
from jobs.models import Job, JobAlarm
from jobs.models.notice import EventType, Interest
from jobs.recurring import health
from jobs.recurring.health import JobKeys, Owners
from jobs.system.notices import events
from jobs.system.notices.events import Event

KINDS: Final = {
    "failing": (EventType.JOB_FAILING, EventType.JOB_RECOVERED),
    "late": (EventType.JOB_LATE, EventType.JOB_ON_TIME),
}
"""The alarms, each with the events of its begin and its end."""
_FIND: Final[dict[str, Callable[[Owners, datetime], JobKeys]]] = {
    "failing": lambda owners, _at: health.failing_jobs(owners),
    "late": lambda owners, at: health.late_jobs(owners, now=at),
}

_ENDED: Final[dict[str, Callable[[Collection[int]], Collection[int]]]] = {
    "failing": health.recovered_jobs,
    # The end is told when the list is complete again.
    "late": lambda _job_ids: (),
}
"""Which of the jobs that a cut-off list lacks have surely recovered."""


def changes(interests: Sequence[Interest]) -> list[Event]:
    """Return the changes that these ask for, and note them; call it in a transaction."""
    found: list[Event] = []
    at = now()
    for kind, types in KINDS.items():
        asking = [one for one in interests if {*types} & {*one.events}]
        if asking:
            found.extend(_of_kind(kind, events.owners_of(asking), at))
        else:
            JobAlarm.objects.filter(kind=kind).delete()
    return found


def _of_kind(kind: str, owners: Owners, at: datetime) -> Iterator[Event]:
    begin, end = KINDS[kind]
    found = _FIND[kind](owners, at)
    alarms = JobAlarm.objects.filter(kind=kind).select_related("job__owner")
    if owners is not None:
        alarms = alarms.filter(job__owner__in=owners)
    known = {alarm.job_id: alarm for alarm in alarms}
    new = Job.objects.select_related("owner").filter(pk__in=found.keys - known.keys())
    for job in new.order_by("pk"):
        alarm, is_new = JobAlarm.objects.get_or_create(
            job=job, kind=kind, defaults={"since_at": at}
        )
        if is_new:
            yield events.of_job(job, begin, since=alarm.since_at, at=at)
    gone: Collection[int] = known.keys() - found.keys
    if not found.is_complete:
        # A list that is cut off says nothing about the jobs that it lacks: ask for each of them.
        gone = _ENDED[kind](gone)
    for job_id in sorted(gone):
        alarm = known[job_id]
        alarm.delete()
        yield events.of_job(alarm.job, end, since=alarm.since_at, at=at)
