"""The inbox: jobs made, changed and deleted by Celery messages, many messages in one transaction.

Other services send `fairshift.upsert_jobs(owner, jobs)` and `fairshift.delete_jobs(owner, keys)`
to its queue. One reader at a time applies them in order, and removes them from Redis after the
commit. If it dies in between, the mark in the database says which messages are done. A refused
message changes nothing and stops no other; `inbox_allowed` says which are refused.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DataError, IntegrityError, transaction

from fleet import Call, crash_point
from fleet.broker import inbox
from jobs.core import log_events
from jobs.core.conf import setting
from jobs.core.errors import OptionError, UnknownOwner
from jobs.definitions import inbox_allowed, upsert
from jobs.definitions.inbox_refusals import Refused, audit_refused, keep_results, shown
from jobs.definitions.placement import JobKey, found_jobs
from jobs.definitions.spec import JobSpec, JobSpecs
from jobs.models import InboxMark, Owner
from jobs.runs import dispatch

logger = logging.getLogger(__name__)

ROUND_SECONDS: Final = 5.0
CHUNK: Final = 1_000

TASKS: Final[Mapping[str, Any]] = {
    "fairshift.upsert_jobs": inspect.signature(lambda owner, jobs: None),  # noqa: ARG005
    "fairshift.delete_jobs": inspect.signature(lambda owner, keys: None),  # noqa: ARG005
}


@dataclass(frozen=True, slots=True)
class Change:
    """The jobs of one call by owner and key; None for a job that is to be deleted."""

    call: Call
    slug: str
    jobs: Mapping[JobKey, JobSpec | None]


def is_any_waiting() -> bool:
    """Say whether calls wait. Raises BrokerUnavailable."""
    with dispatch.broker().client(timeout=setting("PUBLISH_TIMEOUT_SECONDS")) as client:
        return not inbox.are_empty(client, *inbox.lists(setting("INBOX_QUEUE")))


def read(*, seconds: float = ROUND_SECONDS) -> dict[str, int]:
    """Apply the waiting calls, oldest first, for about `seconds`; count those done and refused.

    Raises BrokerUnavailable, and what the database raises: the calls then stay in Redis.
    """
    ends_at = time.monotonic() + seconds
    total = Counter(done=0, refused=0)
    for name in inbox.lists(setting("INBOX_QUEUE")):
        while time.monotonic() < ends_at and (counts := _read_chunk(name)) is not None:
            total.update(counts)
    return dict(total)


def _read_chunk(name: str) -> dict[str, int] | None:
    """Apply the oldest calls of one list; count those done and refused. None without calls."""
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    with dispatch.broker().client(timeout=timeout) as client:
        if inbox.are_empty(client, name):
            return None
    with transaction.atomic():
        # Locked before the list is read: a second reader must not read the same calls.
        InboxMark.objects.bulk_create([InboxMark(name=name)], ignore_conflicts=True)
        mark = InboxMark.objects.select_for_update().get(name=name)
        with dispatch.broker().client(timeout=timeout) as client:
            raws = inbox.oldest(client, name, most=CHUNK)
        if not raws:
            return None
        # Calls that were done but not dropped are read again; the mark is the last of them.
        calls = list(inbox.calls(_after_mark(raws, mark.digest)))
        refused = _apply(calls)
        audit_refused(refused)
        keep_results(calls, refused)
        mark.digest = _digest(raws[-1])
        mark.save(update_fields=["digest"])
        crash_point("inbox.before_commit")
    crash_point("inbox.after_commit")
    with dispatch.broker().client(timeout=timeout) as client:
        inbox.drop(client, name, raws)
    for one in refused:
        text = shown(str(one.error))
        facts = {"task": one.call.task, "owner": one.slug, "call": one.call.id, "error": text}
        log_events.CALL_REFUSED.log(logger, **facts)
    return {"done": len(calls) - len(refused), "refused": len(refused)}


def _after_mark(raws: Sequence[bytes], mark: str) -> Sequence[bytes]:
    """Return the messages after the one that was done last; all if that is not among them."""
    for index in range(len(raws) - 1, -1, -1) if mark else ():
        if _digest(raws[index]) == mark:
            return raws[index + 1 :]
    return raws


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _apply(calls: Sequence[Call]) -> list[Refused]:
    """Apply calls in their order, inside the caller's transaction; return those refused."""
    refused: list[Refused] = []
    asked: list[tuple[Call, str, Any]] = []
    for call in calls:
        try:
            asked.append((call, *_wanted(call)))
        except OptionError as error:
            refused.append(Refused(call, "", error))
    slugs = {slug for _, slug, _ in asked}
    owners = dict(Owner.objects.filter(slug__in=slugs).values_list("slug", "id"))
    changes: list[Change] = []
    specs = JobSpecs()
    for call, slug, wanted in asked:
        try:
            patterns = inbox_allowed.patterns_of(slug)
            if slug not in owners:
                raise UnknownOwner(slug)
            jobs = _jobs(call.task, owners[slug], wanted, specs)
            tasks = (spec.columns["task"] for spec in jobs.values() if spec is not None)
            inbox_allowed.refuse_tasks(slug, tasks, patterns)
            changes.append(Change(call, slug, jobs))
        # Any client may send a call: a bad one must not stop the others.
        except Exception as error:
            refused.append(Refused(call, slug, error))
    foreign = _foreign(changes)
    is_foreign = {id(one.call) for one in foreign}
    allowed = [change for change in changes if id(change.call) not in is_foreign]
    return [*refused, *foreign, *_written(allowed)]


def _foreign(changes: Sequence[Change]) -> list[Refused]:
    """Return the changes of jobs whose present task messages may not change.

    One look is enough: the tasks that these calls write are allowed.
    """
    found = found_jobs({job_key for change in changes for job_key in change.jobs})
    refused = []
    for change in changes:
        present = (found[job_key]["task"] for job_key in change.jobs if job_key in found)
        try:
            patterns = inbox_allowed.patterns_of(change.slug)
            inbox_allowed.refuse_tasks(change.slug, present, patterns)
        except OptionError as error:
            refused.append(Refused(change.call, change.slug, error))
    return refused


def _wanted(call: Call) -> tuple[str, Any]:
    """Return a call's owner, and its unchecked jobs or keys; OptionError for an invalid call."""
    if call.problem:
        raise OptionError("message", call.problem)
    signature = TASKS.get(call.task)
    if signature is None:
        raise OptionError("task", f"this queue takes {' and '.join(TASKS)} only")
    try:
        slug, wanted = signature.bind(*call.args, **call.kwargs).arguments.values()
    except TypeError as error:
        raise OptionError("message", f"calls its task wrongly: {error}") from None
    # PostgreSQL refuses NUL and lone surrogates, also in a query; a slug is ASCII.
    if not isinstance(slug, str) or not slug.isascii() or not slug.isprintable():
        raise OptionError("owner", "is an owner's slug")
    return slug[:64], wanted


def _jobs(task: str, owner_id: int, wanted: Any, specs: JobSpecs) -> dict[JobKey, JobSpec | None]:
    is_delete = task == "fairshift.delete_jobs"
    if not isinstance(wanted, list) or len(wanted) > upsert.BATCH_LIMIT:
        problem = f"is a list of at most {upsert.BATCH_LIMIT:,} elements"
        raise OptionError("keys" if is_delete else "jobs", problem)
    if is_delete:
        return dict.fromkeys((owner_id, key) for key in upsert.checked_keys(wanted))
    return {(owner_id, spec.key): spec for spec in upsert.checked(wanted, specs=specs)}


def _written(changes: Sequence[Change]) -> list[Refused]:
    """Apply changes in order; return those that the database rejects, found by bisection."""
    if not changes:
        return []
    try:
        with transaction.atomic():
            for jobs in _merged(changes):
                upsert.remove(job_key for job_key, spec in jobs.items() if spec is None)
                upsert.store({job_key: spec for job_key, spec in jobs.items() if spec is not None})
        return []
    except (DataError, IntegrityError, OptionError) as error:
        if len(changes) == 1:
            return [Refused(changes[0].call, changes[0].slug, error)]
    half = len(changes) // 2
    return [*_written(changes[:half]), *_written(changes[half:])]


def _merged(changes: Iterable[Change]) -> Iterable[dict[JobKey, JobSpec | None]]:
    """Yield the jobs to write, in few steps: the last of several changes of a job counts.

    A job that is deleted and then upserted is a new job, in a later step.
    """
    jobs: dict[JobKey, JobSpec | None] = {}
    for change in changes:
        if any(
            spec is not None and jobs.get(job_key, spec) is None
            for job_key, spec in change.jobs.items()
        ):
            yield jobs
            jobs = {}
        jobs.update(change.jobs)
    yield jobs
