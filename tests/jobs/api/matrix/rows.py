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
    Backfill,
    Calendar,
    Job,
    MailSubscription,
    Membership,
    Owner,
    Role,
    Rollout,
    Run,
    Submission,
    WebhookEndpoint,
    Window,
    Worker,
)
from jobs.owners.tokens import make_token
from jobs.recurring.backfill import backfill
from jobs.rollouts.making import waves_stored
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


def run_of(owner: Owner) -> Run:
    [run] = submitted(owner, labels={"whose": owner.slug}, target=f"target-of-{owner.slug}")
    return run


def runs_on(worker: UUID, owner: Owner) -> None:
    """Let a worker execute one run of an owner; another one failed, with an error of its own."""
    active, failed = submitted(owner, 2, max_attempts=1)
    recorded(admitted(worker, active), Kind.STARTED)
    admission = admitted(worker, failed)
    recorded(admission, Kind.STARTED)
    error = f"errors.Of{owner.slug}"
    recorded(admission, Kind.FAILED, error_type=error, error_message=owner.slug)


def audited_run_of(owner: Owner) -> str:
    """Return the id of a run in the audit. Other objects of other owners may have equal numbers."""
    run = Run.objects.filter(owner=owner).latest("id")
    AuditEntry.write("cancel", on=run, reason=owner.slug)
    return str(run.id)


def submission_of(owner: Owner) -> Submission:
    return Submission.objects.get(runs=submitted(owner)[0])


def give_waves(submission: Submission, **values: Any) -> None:
    """Let a submission's runs be the first of three waves."""
    ids = list(submission.runs.order_by("id").values_list("id", flat=True))
    waves = waves_stored([*ids, uuid4(), uuid4(), uuid4()], [len(ids), 1, 2])
    Rollout.objects.create(
        submission=submission, owner=submission.owner, waves=waves, released_to=ids[-1], **values
    )


def window_of(owner: Owner) -> Window:
    """One of two, so that it may be removed."""
    calendar = calendar_of(owner, f"{owner.slug} {uuid4()}", needs_approval=True)
    made, _ = (window(calendar, opens_in=3_600, seconds=60, reason=owner.slug) for _ in range(2))
    return made


def member_of(owner: Owner) -> Membership:
    user, _ = get_user_model().objects.get_or_create(username=f"member-of-{owner.slug}")
    AuditEntry.write("pause", on=owner, actor=user, reason=owner.slug)
    values = {"role": Role.VIEWER}
    return Membership.objects.get_or_create(owner=owner, user=user, defaults=values)[0]


def job_of(owner: Owner) -> Job:
    """Return a job of an owner that has missed due times in its past."""
    key = f"job-{Job.objects.count()}-of-{owner.slug}"
    arguments = {"key": key, "task": "tests.add", "arguments": ADD, "interval_minutes": 5}
    upsert_jobs(owner, [arguments])
    return Job.objects.get(owner=owner, key=key)


def backfill_of(owner: Owner) -> Backfill:
    return backfill(job_of(owner), now() - timedelta(hours=1), now())


def webhook_of(owner: Owner) -> WebhookEndpoint:
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
    return endpoint


def subscription_of(owner: Owner) -> MailSubscription:
    """Return a mail subscription of an owner."""
    given = {"name": f"mails of {owner.slug}", "events": ["run.ended"]}
    addresses = [f"ops@{owner.slug}.example"]
    return make_subscription({**given, "addresses": addresses}, owner=owner)


def lasting_worker(_owner: Owner | None = None) -> Worker:
    """Return a worker that is not lost before the last test, however slow the machine is."""
    worker = living_worker()
    silence(worker, seconds=-3_600)
    return Worker.objects.get(pk=worker)


def let_run(run: Run) -> None:
    """Let a worker have a run: the same worker for all owners."""
    worker = Worker.objects.order_by("id").first() or lasting_worker()
    # Not by an admission: its windows are closed.
    Run.objects.filter(pk=run.pk).update(state="running", worker_id=worker.pk, token=1)


ROWS: Final[dict[str, Callable[[Owner], Any]]] = {
    "backfill": backfill_of,
    "calendar": lambda owner: window_of(owner).calendar,
    "owner": lambda owner: owner,
    "job": job_of,
    "mail_subscription": subscription_of,
    "member": member_of,
    "run": run_of,
    "submission": submission_of,
    "token": lambda owner: make_token(owner.slug, scopes=["read"], owner=owner).token,
    "webhook": webhook_of,
    "window": window_of,
    "worker": lasting_worker,
}
"""Make a row of an owner, by noun."""
NONE: Final = 2**40
NOBODY: Final = "nobody99"
"""Keys that no row has."""


def key_of(noun: str) -> Callable[[Owner], Any]:
    """Return what makes a row of a noun, and returns its key."""
    return lambda owner: ROWS[noun](owner).pk


PARAMETERS: Final[dict[str, Parameter]] = {
    "run_id": Parameter(key_of("run"), UUID(int=7 << 76 | 2 << 62)),
    "job_id": Parameter(key_of("job"), 2**62),
    "backfill_id": Parameter(key_of("backfill"), NONE),
    "task": Parameter(lambda _owner: "tests.add", "tests.nothing", is_owned=False),
    "prefix": Parameter(lambda owner: ROWS["token"](owner).prefix, "fs_aaaaaaaa"),
    "webhook_id": Parameter(key_of("webhook"), NONE),
    "subscription_id": Parameter(key_of("mail_subscription"), NONE),
    "submission_id": Parameter(key_of("submission"), NONE),
    "calendar_id": Parameter(key_of("calendar"), NONE),
    "window_id": Parameter(key_of("window"), NONE),
    "attachment_id": Parameter(lambda owner: window_of(owner).calendar.attachments.get().pk, NONE),
    "slug": Parameter(lambda owner: owner.slug, NOBODY),
    "user": Parameter(lambda owner: member_of(owner).user.get_username(), NOBODY),
    "worker_id": Parameter(key_of("worker"), UUID(int=9), is_owned=False),
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


def of_no_row(value: str) -> str:
    """Return a value of a filter of the same form as the stranger's, that no row has."""
    if value.isdigit():
        return str(NONE)
    other = value.replace("strange", NOBODY[:-1])
    return other if other != value else str(UUID(int=9))


def words_of(owner: Owner) -> set[str]:
    """Return what an answer to another owner must not contain."""
    runs = Run.objects.filter(owner=owner).values_list("id", flat=True)
    members = Membership.objects.filter(owner=owner).values_list("user__username", flat=True)
    keys = Job.objects.filter(owner=owner).values_list("key", flat=True)
    prefixes = ApiToken.objects.filter(owner=owner).values_list("prefix", flat=True)
    return {owner.slug, *map(str, runs), *members, *keys, *prefixes}
