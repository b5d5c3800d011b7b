"""Events that webhooks and mails tell of, and which of them an interest asks for. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from jobs.models import Job, Rollout
from jobs.models.notice import EventType, Interest
from jobs.system.ends import RunEnd, SubmissionEnd

Asking = TypeVar("Asking", bound=Interest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. The same event always has the same id, by which receivers drop repeats."""

    id: str
    type: EventType
    at: datetime
    owner_id: int
    task: str
    job_id: int | None = None
    rollout: int | None = None
    """The submission, if the event is about its waves."""
    states: frozenset[str] = frozenset()
    """The states in which runs have ended; empty for events of jobs."""
    data: dict[str, Any] = field(default_factory=dict)
    """Ids, times, states and the class of the error: nothing that may be secret."""

    @property
    def subject(self) -> str:
        """What the event is about, as mails are counted by: its rollout, its job, or its task."""
        if self.rollout is not None:
            return f"submission {self.rollout}"
        return f"job {self.job_id}" if self.job_id is not None else f"task {self.task}"

    @property
    def change(self) -> str:
        """The kind of the event, with the state of an ended run, or the wave to decide about."""
        if self.type in (EventType.ROLLOUT_STOPPED, EventType.ROLLOUT_WAITS):
            return f"{self.type.value} {self.data['wave']}"
        is_run = self.type == EventType.RUN_ENDED
        return " ".join([self.type.value, *sorted(self.states)]) if is_run else self.type.value


def of_run(end: RunEnd) -> Event:
    """Return the event of a run's end. After an operator's retry a run ends again: another one."""
    return Event(
        id=f"evt_run_{end.run_id.hex}_{_micros(end.ended_at)}",
        type=EventType.RUN_ENDED,
        at=end.ended_at,
        owner_id=end.owner_id,
        task=end.task,
        job_id=end.job_id,
        states=frozenset({end.state.value}),
        data={
            "owner": end.owner,
            "task": end.task,
            "run": str(end.run_id),
            "job": end.job_id,
            "submission": end.submission_id,
            "state": end.state.value,
            "attempt": end.attempt,
            "error": end.error_type,
            "ended_at": end.ended_at.isoformat(),
        },
    )


def of_submission(end: SubmissionEnd) -> Event:
    """Return the event of a submission whose runs have all ended."""
    counts = {state.value: count for state, count in end.counts.items() if count}
    return Event(
        id=f"evt_submission_{end.submission_id}_{_micros(end.ended_at)}",
        type=EventType.SUBMISSION_ENDED,
        at=end.ended_at,
        owner_id=end.owner_id,
        task=end.task,
        states=frozenset(counts),
        data={
            "owner": end.owner,
            "task": end.task,
            "submission": end.submission_id,
            "label": end.label,
            "counts": counts,
            "ended_at": end.ended_at.isoformat(),
        },
    )


def of_job(job: Job, kind: EventType, *, since: datetime, at: datetime) -> Event:
    """Return the event that a job's health has changed; `since` is when its alarm began."""
    return Event(
        id=f"evt_{kind.value.replace('.', '_')}_{job.pk}_{_micros(since)}",
        type=kind,
        at=at,
        owner_id=job.owner_id,
        task=job.task,
        job_id=job.pk,
        data={
            "owner": job.owner.slug,
            "task": job.task,
            "job": job.pk,
            "key": job.key,
            "since": since.isoformat(),
        },
    )


def of_rollout(rollout: Rollout, told: Mapping[str, Any], *, url: str) -> Event:
    """Return an event that a rollout has noted (`jobs/rollouts/telling.py`)."""
    kind, at = EventType(told["type"]), datetime.fromisoformat(told["at"])
    submission, counts = rollout.submission, dict(told["counts"])
    number = f"{submission.pk}_{told['wave']}_{_micros(at)}"
    return Event(
        id=f"evt_{kind.value.replace('.', '_')}_{number}",
        type=kind,
        at=at,
        owner_id=rollout.owner_id,
        task=submission.task,
        rollout=submission.pk,
        states=frozenset(counts) if kind == EventType.WAVE_ENDED else frozenset(),
        data={
            "owner": submission.owner.slug,
            "task": submission.task,
            "submission": submission.pk,
            "label": submission.label,
            "wave": told["wave"],
            "waves": len(rollout.waves),
            "counts": counts,
            "stop_at": rollout.stop_at,
            "reason": told["reason"],
            "at": told["at"],
            "url": url,
        },
    )


def asks_for(interest: Interest, event: Event) -> bool:
    """Say whether an endpoint or a subscription asks for an event."""
    return (
        interest.owner_id in (None, event.owner_id)
        and event.type.value in interest.events
        and interest.job_id in (None, event.job_id)
        and (
            not interest.tasks
            or any(fnmatchcase(event.task, pattern) for pattern in interest.tasks)
        )
        and (not event.states or not interest.states or bool(event.states & set(interest.states)))
    )


def wanted(interests: Iterable[Asking], found: Iterable[Event]) -> Iterator[tuple[Asking, Event]]:
    """Yield each event with each interest that asks for it."""
    # By owner: an event is not compared with the interests of all other owners.
    by_owner: dict[int | None, list[Asking]] = defaultdict(list)
    for interest in interests:
        by_owner[interest.owner_id].append(interest)
    for event in found:
        for owner_id in (None, event.owner_id):
            for interest in by_owner.get(owner_id, ()):
                if asks_for(interest, event):
                    yield interest, event


def owners_of(interests: Iterable[Interest]) -> frozenset[int] | None:
    """Return the owners whose events are asked for; None: all."""
    owners = {interest.owner_id for interest in interests}
    return None if None in owners else frozenset(owner for owner in owners if owner is not None)


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)
