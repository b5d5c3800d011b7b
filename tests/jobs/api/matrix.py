"""What the isolation matrix knows of each resource: rows of an owner, unknown keys, bodies.

A new operation is in the matrix by itself. Its path parameters need an entry in PARAMETERS, its
body one in BODIES, by the operation's id.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model

from jobs import upsert_jobs
from jobs.api.site import document
from jobs.models import Job, Membership, Owner, Role, Run, Window
from jobs.owners.tokens import make_token
from jobs.runs.cancellation import cancel_runs
from tests.jobs.api.conftest import ROOT
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.windows_world import calendar_of, window

METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
ADD: Final = {"x": 1, "y": 2}
JOB: Final = {"key": "nightly", "task": "tests.add", "arguments": ADD, "cron": "@daily"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a path parameter is filled."""

    of: Callable[[Owner], Any]
    """Make a row of an owner, and return its key."""
    unknown: Any
    """A key of the right form that no row has."""
    is_owned: bool = True
    """False: its rows belong to no owner, so none is foreign."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the document."""

    id: str
    method: str
    path: str
    parameters: tuple[str, ...]
    scope: str
    has_body: bool

    def __str__(self) -> str:
        return self.id


def run_of(owner: Owner) -> UUID:
    [run] = submitted(owner, labels={"whose": owner.slug})
    return run.id


def cancelled_run_of(owner: Owner) -> UUID:
    run_id = run_of(owner)
    cancel_runs([run_id])
    return run_id


def submission_of(owner: Owner) -> int:
    [run] = submitted(owner)
    assert run.submission_id is not None
    return run.submission_id


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
    return name


def job_of(owner: Owner) -> int:
    """Return a job of an owner that has missed due times in its past."""
    key = f"job-{Job.objects.count()}-of-{owner.slug}"
    arguments = {"key": key, "task": "tests.add", "arguments": ADD, "interval_minutes": 5}
    upsert_jobs(owner, [arguments])
    return Job.objects.get(owner=owner, key=key).pk


NONE: Final = 2**40
PARAMETERS: Final[dict[str, Parameter]] = {
    "run_id": Parameter(run_of, UUID(int=7 << 76 | 2 << 62)),
    "job_id": Parameter(job_of, 2**62),
    "task": Parameter(lambda _owner: "tests.add", "tests.nothing", is_owned=False),
    "prefix": Parameter(
        lambda owner: make_token(owner.slug, scopes=["read"], owner=owner).token.prefix,
        "fs_aaaaaaaa",
    ),
    "submission_id": Parameter(submission_of, NONE),
    "calendar_id": Parameter(calendar_key_of, NONE),
    "window_id": Parameter(window_key_of, NONE),
    "attachment_id": Parameter(attachment_of, NONE),
    "slug": Parameter(lambda owner: owner.slug, "nobody99"),
    "user": Parameter(member_of, "nobody99"),
    "worker_id": Parameter(lambda _owner: living_worker(), UUID(int=9), is_owned=False),
}
"""By the name of the parameter."""

SPECIAL: Final[dict[str, dict[str, Callable[[Owner], Any]]]] = {
    "retry_run": {"run_id": cancelled_run_of},
    "watch_submission": {"submission_id": ended_submission_of},
}
"""Operations whose row must be in another state than a new one."""

FILE: Final = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//scene//EN
BEGIN:VEVENT
UID:one
DTSTAMP:20260101T000000Z
DTSTART:20300105T220000Z
DTEND:20300106T020000Z
SUMMARY:night
END:VEVENT
END:VCALENDAR
"""
FIT: Final = {"task": "tests.add", "targets": ["sw-1", "sw-2"]}
BODIES: Final[dict[str, Any]] = {
    "forecast_runs": FIT,
    "cancel_submission": {},
    "override_submission": {"reason": "urgent"},
    "override_run": {"reason": "urgent"},
    "create_calendar": {"name": "program"},
    "change_calendar": {"cut_off_seconds": 60},
    "attach_calendar": {},
    "import_windows": {"file": FILE, "source": "change board"},
    "request_window": {"starts": "2030-01-05T22:00:00", "duration_seconds": 60, "zone": "UTC"},
    "change_window": {"reason": "moved"},
    "approve_window": {},
    "reject_window": {},
    "revoke_window": {},
    "submit_run": {"task": "tests.add", "arguments": ADD},
    "submit_many_runs": {"task": "tests.add", "arguments": [ADD]},
    "cancel_run": {},
    "retry_run": {},
    "cancel_runs": {"filter": {"task": "tests.add"}},
    "retry_runs": {"filter": {"task": "tests.add"}},
    "make_token": {"name": "program", "scopes": ["read"]},
    "revoke_token": {},
    "create_job": JOB,
    "replace_job": {"task": "tests.add", "arguments": ADD},
    "patch_job": {"priority": 3},
    "upsert_jobs": {"jobs": [JOB]},
    "pause_job": {"until": "2199-01-01T00:00:00Z"},
    "resume_job": {},
    "run_job": {},
    "backfill_job": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T01:00:00Z"},
    "add_owner": {"slug": "initech"},
    "change_owner": {"name": "Acme"},
    "pause_owner": {},
    "resume_owner": {},
    "add_member": {"user": "newcomer", "role": "viewer"},
    "change_member": {"role": "operator"},
    "retry_dead_letters": {"task": "tests.add", "error": "E", "reason": "fixed"},
}

OF_INSTALLATION: Final = frozenset({"add_owner"})
"""Operations that only callers for the whole installation may use."""

NAMES_OWNER: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "forecast_runs": lambda slug: {**FIT, "owner": slug},
    "create_calendar": lambda slug: {"name": "program", "owner": slug},
    "submit_run": lambda slug: {**BODIES["submit_run"], "owner": slug},
    "submit_many_runs": lambda slug: {**BODIES["submit_many_runs"], "owner": slug},
    "cancel_runs": lambda slug: {"filter": {"owner": slug}},
    "retry_runs": lambda slug: {"filter": {"owner": slug}},
    "make_token": lambda slug: {**BODIES["make_token"], "owner": slug},
    "retry_dead_letters": lambda slug: {**BODIES["retry_dead_letters"], "owner": slug},
    "create_job": lambda slug: {**BODIES["create_job"], "owner": slug},
    "upsert_jobs": lambda slug: {**BODIES["upsert_jobs"], "owner": slug},
}
"""Bodies that name an owner."""


def operations() -> list[Operation]:
    """Return every operation of the API's document."""
    found = document(tasks=[], prefix=f"{ROOT}/")
    return [
        Operation(
            id=one["operationId"],
            method=method,
            path=path,
            parameters=tuple(each["name"] for each in one["parameters"] if each["in"] == "path"),
            scope=one["security"][0]["Token"][0],
            has_body="requestBody" in one,
        )
        for path, methods in found["paths"].items()
        for method, one in methods.items()
        if method in METHODS
    ]


def key_of(operation: Operation, parameter: str, owner: Owner) -> Any:
    """Make a row that the operation can act on, and return its key."""
    special = SPECIAL.get(operation.id, {})
    return special.get(parameter, PARAMETERS[parameter].of)(owner)


def words_of(owner: Owner) -> set[str]:
    """Return what an answer to another owner must not contain."""
    runs = Run.objects.filter(owner=owner).values_list("id", flat=True)
    members = Membership.objects.filter(owner=owner).values_list("user__username", flat=True)
    keys = Job.objects.filter(owner=owner).values_list("key", flat=True)
    return {owner.slug, *map(str, runs), *members, *keys}
