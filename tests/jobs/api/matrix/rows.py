"""Rows of an owner for the isolation matrix: by path parameter, by filter, in special states."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model

from fleet import Kind
from jobs import upsert_jobs
from jobs.core.sql import now
from jobs.models import (
    ApiToken,
    AuditEntry,
    Calendar,
    Job,
    Membership,
    Owner,
    Role,
    Rollout,
    Run,
    Submission,
    Window,
    Worker,
)
from jobs.owners.tokens import make_token
from jobs.recurring.backfill import backfill
from jobs.rollouts.making import waves_stored
from jobs.runs.cancellation import cancel_runs
from jobs.system.notices.endpoints import make_endpoint
from jobs.system.notices.mails import make_subscription
from tests.jobs.scenes import admitted, living_worker, recorded, silence, submitted
from tests.jobs.windows_world import calendar_of, window

ADD: Final = {"x": 1, "y": 2}


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a path parameter is filled."""

    of: Callable[[Owner], Any]
    """Make a row of an owner, and return its key."""
    unknown: Any
    """A key of the right form that no row has."""
    is_owned: bool = True
    """False: its rows belong to no owner, so none is foreign."""


def run_of(owner: Owner) -> UUID:
    target = f"target-of-{owner.slug}"
    [run] = submitted(owner, labels={"whose": owner.slug}, target=target)
    return run.id


def runs_on(worker: UUID, owner: Owner) -> None:
    """Let a worker execute one run of an owner; another one failed, with an error of its own."""
    active, failed = submitted(owner, 2, max_attempts=1)
    recorded(admitted(worker, active), Kind.STARTED)
    admission = admitted(worker, failed)
    recorded(admission, Kind.STARTED)
    error = f"errors.Of{owner.slug}"
    recorded(admission, Kind.FAILED, error_type=error, error_message=owner.slug)


def cancelled_run_of(owner: Owner) -> UUID:
    run_id = run_of(owner)
    cancel_runs([run_id])
    return run_id


def audited_run_of(owner: Owner) -> str:
    """Return the id of a run in the audit. Other objects of other owners may have equal numbers."""
    run = Run.objects.filter(owner=owner).latest("id")
    AuditEntry.write("cancel", on=run, reason=owner.slug)
    return str(run.id)


def submission_of(owner: Owner) -> int:
    [run] = submitted(owner)
    assert run.submission_id is not None
    return run.submission_id


def give_waves(submission: Submission, **values: Any) -> None:
    """Let a submission's runs be the first of three waves."""
    ids = list(submission.runs.order_by("id").values_list("id", flat=True))
    waves = waves_stored([*ids, uuid4(), uuid4(), uuid4()], [len(ids), 1, 2])
    Rollout.objects.create(
        submission=submission, owner=submission.owner, waves=waves, released_to=ids[-1], **values
    )


def ended_submission_of(owner: Owner) -> int:
    """A stream of its progress ends at once."""
    [run] = submitted(owner)
    cancel_runs([run.id])
    assert run.submission_id is not None
    return run.submission_id


def calendar_key_of(owner: Owner) -> int:
    return window_of(owner).calendar_id


def window_key_of(owner: Owner) -> int:
    return window_of(owner).pk


def window_of(owner: Owner) -> Window:
    """One of two, so that it may be removed."""
    calendar = calendar_of(owner, f"{owner.slug} {uuid4()}", needs_approval=True)
    made, _ = (window(calendar, opens_in=3_600, seconds=60, reason=owner.slug) for _ in range(2))
    return made


def attachment_of(owner: Owner) -> int:
    return window_of(owner).calendar.attachments.get().pk


def member_of(owner: Owner) -> str:
    name = f"member-of-{owner.slug}"
    user, _ = get_user_model().objects.get_or_create(username=name)
    Membership.objects.get_or_create(owner=owner, user=user, defaults={"role": Role.VIEWER})
    AuditEntry.write("pause", on=owner, actor=user, reason=owner.slug)
    return name


def member_key_of(owner: Owner) -> int:
    name = member_of(owner)
    return Membership.objects.get(owner=owner, user__username=name).pk


def job_of(owner: Owner) -> int:
    """Return a job of an owner that has missed due times in its past."""
    key = f"job-{Job.objects.count()}-of-{owner.slug}"
    arguments = {"key": key, "task": "tests.add", "arguments": ADD, "interval_minutes": 5}
    upsert_jobs(owner, [arguments])
    return Job.objects.get(owner=owner, key=key).pk


def backfill_of(owner: Owner) -> int:
    job = Job.objects.get(pk=job_of(owner))
    return backfill(job, now() - timedelta(hours=1), now()).pk


def webhook_of(owner: Owner) -> int:
    """Return an endpoint of an owner, with a failed delivery; a mail subscription is beside it."""
    url = f"https://{owner.slug}.example/{owner.slug}"
    given = {"name": f"hook of {owner.slug}", "events": ["run.ended"]}
    endpoint = make_endpoint({**given, "url": url}, owner=owner).endpoint
    endpoint.deliveries.create(
        owner=owner,
        event_id=f"evt_{owner.slug}",
        event_type="run.ended",
        event_at=now(),
        data={"owner": owner.slug},
        state="failed",
        next_at=now(),
    )
    subscription_of(owner)
    return endpoint.pk


def subscription_of(owner: Owner) -> int:
    """Return a mail subscription of an owner."""
    given = {"name": f"mails of {owner.slug}", "events": ["run.ended"]}
    addresses = [f"ops@{owner.slug}.example"]
    return make_subscription({**given, "addresses": addresses}, owner=owner).pk


NONE: Final = 2**40


def _lasting_worker() -> UUID:
    """Return a worker that is not lost before the last test, however slow the machine is."""
    worker = living_worker()
    silence(worker, seconds=-3_600)
    return worker


def let_run(run: Run) -> None:
    """Let a worker have a run: the same worker for all owners."""
    worker = Worker.objects.order_by("id").first()
    worker_id = _lasting_worker() if worker is None else worker.pk
    # Not by an admission: its windows are closed.
    Run.objects.filter(pk=run.pk).update(state="running", worker_id=worker_id, token=1)


PARAMETERS: Final[dict[str, Parameter]] = {
    "run_id": Parameter(run_of, UUID(int=7 << 76 | 2 << 62)),
    "job_id": Parameter(job_of, 2**62),
    "backfill_id": Parameter(backfill_of, NONE),
    "task": Parameter(lambda _owner: "tests.add", "tests.nothing", is_owned=False),
    "prefix": Parameter(
        lambda owner: make_token(owner.slug, scopes=["read"], owner=owner).token.prefix,
        "fs_aaaaaaaa",
    ),
    "webhook_id": Parameter(webhook_of, NONE),
    "subscription_id": Parameter(subscription_of, NONE),
    "submission_id": Parameter(submission_of, NONE),
    "calendar_id": Parameter(calendar_key_of, NONE),
    "window_id": Parameter(window_key_of, NONE),
    "attachment_id": Parameter(attachment_of, NONE),
    "slug": Parameter(lambda owner: owner.slug, "nobody99"),
    "user": Parameter(member_of, "nobody99"),
    "worker_id": Parameter(lambda _owner: _lasting_worker(), UUID(int=9), is_owned=False),
}
"""By the name of the parameter."""


def _of(model: Any) -> Callable[[Owner], str]:
    return lambda owner: str(model.objects.filter(owner=owner).latest("pk").pk)


FILTERS: Final[dict[str, Callable[[Owner], str]]] = {
    "owner": lambda owner: owner.slug,
    "job": lambda owner: Job.objects.filter(owner=owner).latest("pk").key,
    "key": lambda owner: Job.objects.filter(owner=owner).latest("pk").key,
    "search": lambda owner: Job.objects.filter(owner=owner).latest("pk").key[:-1],
    "target": lambda owner: f"target-of-{owner.slug}",
    "submission": _of(Submission),
    "calendar": _of(Calendar),
    "name": lambda owner: Calendar.objects.filter(owner=owner).latest("pk").name,
    "label": lambda owner: f"whose:{owner.slug}",
    "error": lambda owner: f"errors.Of{owner.slug}",
    "actor": lambda owner: f"member-of-{owner.slug}",
    "object_id": audited_run_of,
}
"""Filters that may name a row of an owner: such a value, by the name of the parameter."""

NAME_NO_ROW: Final = frozenset(
    {
        *("state", "task", "after", "before", "limit", "cursor", "reason", "count", "month"),
        *("zone", "effect", "schedule", "enabled", "paused", "action", "object_type", "format"),
        *("age", "approval", "health", "queue", "attempt", "level", "text"),
        "with_arguments",
    }
)
"""Query parameters that name no row. A cursor of another caller is refused (test_runs)."""


def words_of(owner: Owner) -> set[str]:
    """Return what an answer to another owner must not contain."""
    runs = Run.objects.filter(owner=owner).values_list("id", flat=True)
    members = Membership.objects.filter(owner=owner).values_list("user__username", flat=True)
    keys = Job.objects.filter(owner=owner).values_list("key", flat=True)
    prefixes = ApiToken.objects.filter(owner=owner).values_list("prefix", flat=True)
    return {owner.slug, *map(str, runs), *members, *keys, *prefixes}
