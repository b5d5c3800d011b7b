"""The inbox: jobs made, changed and deleted by Celery messages, many messages in one transaction.

Other services send `fairshift.upsert_jobs(owner, jobs)` and `fairshift.delete_jobs(owner, keys)`
to its queue. One reader at a time applies them in the order of their coming, and takes them
from Redis only after the commit; of a reader that dies in between, the mark in the database
says what is done already. A message that is refused changes nothing, and hinders no other.
All are refused whose owners and tasks the setting INBOX_ALLOWED does not name.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DataError, IntegrityError, transaction

from fleet import Call, crash_point
from fleet.broker import inbox
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError, OptionError, UnknownOwner
from jobs.definitions import inbox_allowed, upsert
from jobs.definitions.inbox_refusals import Refused, audit_refused, keep_results, shown
from jobs.definitions.placement import JobKey
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
    """What one call asks for: jobs by their places, None for one that is to be deleted."""

    call: Call
    slug: str
    jobs: Mapping[JobKey, JobSpec | None]


def read(*, seconds: float = ROUND_SECONDS) -> dict[str, int]:
    """Apply the calls that wait, oldest first, for about so long; return how many of each end.

    Raises BrokerUnavailable, and what the database raises: the calls then stay where they are.
    """
    ends_at = time.monotonic() + seconds
    done = refused = 0
    for name in inbox.lists(setting("INBOX_QUEUE")):
        while time.monotonic() < ends_at and (chunk := _read_chunk(name)) is not None:
            done += chunk.done
            refused += len(chunk.refused)
    return {"done": done, "refused": refused}


@dataclass(frozen=True, slots=True)
class Chunk:
    """What became of the calls that were read at once."""

    done: int
    refused: Sequence[Refused]


def _read_chunk(name: str) -> Chunk | None:
    """Apply the oldest calls of one list; None when there are none."""
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    with transaction.atomic():
        # Locked before the list is looked at: a second reader would see what we are doing.
        InboxMark.objects.bulk_create([InboxMark(name=name)], ignore_conflicts=True)
        mark = InboxMark.objects.select_for_update().get(name=name)
        with dispatch.broker().client(timeout=timeout) as client:
            raws = inbox.oldest(client, name, most=CHUNK)
        if not raws:
            return None
        # What is done and was not dropped comes again; the mark is the last of it.
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
        logger.warning("refused %s of %s (%s): %s", one.call.task, one.slug, one.call.id, text)
    return Chunk(len(calls) - len(refused), refused)


def _after_mark(raws: Sequence[bytes], mark: str) -> Sequence[bytes]:
    """Return the messages that came after the one that was done last, all if it is gone."""
    for index in range(len(raws) - 1, -1, -1) if mark else ():
        if _digest(raws[index]) == mark:
            return raws[index + 1 :]
    return raws


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _apply(calls: Sequence[Call]) -> list[Refused]:
    """Apply calls in their order, inside the caller's transaction; return those refused."""
    refused: list[Refused] = []
    changes: list[Change] = []
    owners = _owners(calls)
    specs = JobSpecs()
    for call in calls:
        slug = ""
        try:
            slug, wanted = _wanted(call)
            patterns = inbox_allowed.patterns_of(slug)
            if slug not in owners:
                raise UnknownOwner(slug)
            jobs = _jobs(call.task, owners[slug], wanted, specs)
            tasks = (spec.columns["task"] for spec in jobs.values() if spec is not None)
            inbox_allowed.refuse_tasks(slug, tasks, patterns)
            changes.append(Change(call, slug, jobs))
        # A call comes from anywhere, and no other is to suffer from it.
        except Exception as error:
            refused.append(Refused(call, slug, error))
    foreign = _foreign(changes)
    is_foreign = {id(one.call) for one in foreign}
    allowed = [change for change in changes if id(change.call) not in is_foreign]
    return [*refused, *foreign, *_written(allowed)]


def _foreign(changes: Sequence[Change]) -> list[Refused]:
    """Return the changes of jobs whose present task messages may not touch.

    Looked at once: what these calls themselves write has a task that they may touch.
    """
    tasks = inbox_allowed.tasks_of({job_key for change in changes for job_key in change.jobs})
    refused = []
    for change in changes:
        present = (tasks[job_key] for job_key in change.jobs if job_key in tasks)
        try:
            patterns = inbox_allowed.patterns_of(change.slug)
            inbox_allowed.refuse_tasks(change.slug, present, patterns)
        except OptionError as error:
            refused.append(Refused(change.call, change.slug, error))
    return refused


def _owners(calls: Iterable[Call]) -> dict[str, int]:
    """Return the numbers of the owners that calls name, by slug."""
    slugs = set()
    for call in calls:
        try:
            slugs.add(_wanted(call)[0])
        except FairshiftError:
            continue  # it is refused in its turn
    return dict(Owner.objects.filter(slug__in=slugs).values_list("slug", "id"))


def _wanted(call: Call) -> tuple[str, Any]:
    """Return a call's owner, and its jobs or keys unchecked; raise OptionError for no such call."""
    if call.problem:
        raise OptionError("message", call.problem)
    signature = TASKS.get(call.task)
    if signature is None:
        raise OptionError("task", f"this queue takes {' and '.join(TASKS)} only")
    try:
        slug, wanted = signature.bind(*call.args, **call.kwargs).arguments.values()
    except TypeError as error:
        raise OptionError("message", f"calls its task wrongly: {error}") from None
    # A slug is ASCII; PostgreSQL takes no NUL and no lone surrogate, not even in a question.
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
    """Apply changes in order. If the batch fails, bisect it and return the changes that the
    database rejects.
    """
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
    # One of them is to blame: the halves tell which.
    half = len(changes) // 2
    return [*_written(changes[:half]), *_written(changes[half:])]


def _merged(changes: Iterable[Change]) -> Iterable[dict[JobKey, JobSpec | None]]:
    """Yield what is to be written in few steps: of several words on one job the last counts.

    A job that is deleted and then made again is made anew, in a step after.
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
