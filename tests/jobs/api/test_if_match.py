"""If-Match is compared under the row's lock: a change that commits meanwhile is not overwritten."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from jobs import upsert_jobs
from jobs.core.states import State
from jobs.models import Calendar, Job, Membership, Owner, Role, Run, WebhookEndpoint
from jobs.owners.members import locked_members
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.api.job_scenes import change
from tests.jobs.scenes import behind, submitted
from tests.jobs.system.notices.scenes import endpoint

Act = Callable[[Client, str, str], Any]


def _delete(client: Client, path: str, etag: str) -> Any:
    return change(client, "delete", path, None, etag)


def _lower(client: Client, path: str, etag: str) -> Any:
    return change(client, "patch", path, {"role": "viewer"}, etag)


def _pause(client: Client, path: str, etag: str) -> Any:
    return post(client, f"{path}/pause", {}, **{"If-Match": etag})


def _pause_job(client: Client, path: str, etag: str) -> Any:
    return post(client, f"{path}/pause", {"until": "2199-01-01T00:00:00Z"}, **{"If-Match": etag})


def _cancel(client: Client, path: str, etag: str) -> Any:
    return post(client, f"{path}/cancel", {}, **{"If-Match": etag})


def _retry(client: Client, path: str, etag: str) -> Any:
    return post(client, f"{path}/retry", {}, **{"If-Match": etag})


def _rename(client: Client, path: str, etag: str) -> Any:
    return change(client, "patch", path, {"name": "mine"}, etag)


def _rotate(client: Client, path: str, etag: str) -> Any:
    return post(client, f"{path}/rotate", {}, **{"If-Match": etag})


def _change_calendar(acme: Owner) -> None:
    Calendar.objects.update(name="days")


def _change_member(acme: Owner) -> None:
    with locked_members(acme):
        Membership.objects.update(role=Role.APPROVER)


def _change_owner(acme: Owner) -> None:
    Owner.objects.filter(pk=acme.pk).update(name="Acme Inc.")


def _change_job(acme: Owner) -> None:
    Job.objects.update(name="backup")


def _change_run(acme: Owner) -> None:
    Run.objects.update(token=1)


def _change_webhook(acme: Owner) -> None:
    WebhookEndpoint.objects.update(url="https://other.example/")


@pytest.fixture
def eve(committed: None, acme: Owner) -> Iterator[Membership]:
    """A member; users are not among the rows that `committed` removes."""
    user: Any = get_user_model().objects.create(username="eve")
    yield Membership.objects.create(owner=acme, user=user, role=Role.OPERATOR)
    user.delete()


@pytest.mark.parametrize(
    ("act", "kind", "change_first"),
    [
        (_delete, "calendar", _change_calendar),
        (_delete, "member", _change_member),
        (_lower, "member", _change_member),
        (_pause, "owner", _change_owner),
        (_pause_job, "job", _change_job),
        (_cancel, "queued run", _change_run),
        (_retry, "cancelled run", _change_run),
        (_rename, "webhook", _change_webhook),
        (_delete, "webhook", _change_webhook),
        (_rotate, "webhook", _change_webhook),
    ],
)
def test_a_version_that_changes_before_the_lock_is_refused(
    eve: Membership,
    caller: Caller,
    *,
    act: Act,
    kind: str,
    change_first: Callable[[Owner], None],
) -> None:
    """The request waits for the earlier change, and is answered 412."""
    acme = eve.owner
    calendar = Calendar.objects.create(owner=acme, name="nights")
    upsert_jobs(acme, [{"key": "nightly", "task": "tests.add", "arguments": {"x": 1, "y": 2}}])
    job = Job.objects.get()
    hook = endpoint(acme, "https://ci.example/")
    queued, cancelled = submitted(acme, 2)
    cancelled.cancel()
    path = {
        "calendar": f"/calendars/{calendar.pk}",
        "member": "/owners/acme/members/eve",
        "owner": "/owners/acme",
        "job": f"/jobs/{job.pk}",
        "webhook": f"/webhooks/{hook.pk}",
        "queued run": f"/runs/{queued.id}",
        "cancelled run": f"/runs/{cancelled.id}",
    }[kind]
    client = caller(acme)
    etag = client.get(f"{ROOT}{path}")["ETag"]
    with behind(lambda: act(client, path, etag)) as (begin, outcomes):
        change_first(acme)
        begin()
    [answer] = outcomes
    problem(answer, 412, "precondition_failed")
    eve.refresh_from_db()
    assert Calendar.objects.exists() and eve.role != Role.VIEWER
    for row in (acme, job, queued, cancelled, hook):
        row.refresh_from_db()
    assert (acme.paused_at, job.paused_until) == (None, None)
    assert (queued.state, cancelled.state) == (State.QUEUED, State.CANCELLED)
    assert (hook.name, hook.old_secret_until) == ("scene", None)
