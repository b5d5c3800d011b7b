"""If-Match is compared under the row's lock: a change that commits meanwhile is not overwritten."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from jobs.core.states import State
from jobs.models import Calendar, Membership, Owner, Role, Run, WebhookEndpoint
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


def _act(name: str) -> Act:
    return lambda client, path, etag: post(client, f"{path}/{name}", {}, **{"If-Match": etag})


def _change_member(acme: Owner) -> None:
    with locked_members(acme):
        Membership.objects.update(role=Role.APPROVER)


@pytest.fixture
def eve(committed: None, acme: Owner) -> Iterator[Membership]:
    """A member; users are not among the rows that `committed` removes."""
    user: Any = get_user_model().objects.create(username="eve")
    yield Membership.objects.create(owner=acme, user=user, role=Role.OPERATOR)
    user.delete()


@pytest.mark.parametrize(
    ("act", "kind", "change_first"),
    [
        (_delete, "calendar", lambda _acme: Calendar.objects.update(name="days")),
        (_delete, "member", _change_member),
        (_lower, "member", _change_member),
        (_act("pause"), "owner", lambda _acme: Owner.objects.update(name="Acme Inc.")),
        (_act("cancel"), "run", lambda _acme: Run.objects.update(token=1)),
        (_delete, "webhook", lambda _acme: WebhookEndpoint.objects.update(name="mine")),
    ],
)
def test_a_version_that_changes_before_the_lock_is_refused(
    eve: Membership,
    caller: Caller,
    *,
    act: Act,
    kind: str,
    change_first: Callable[[Owner], Any],
) -> None:
    """The request waits for the earlier change, and is answered 412.

    Of each way to lock a row; which actions lock, the registry says for all faces.
    """
    acme = eve.owner
    calendar = Calendar.objects.create(owner=acme, name="nights")
    hook = endpoint(acme, "https://ci.example/")
    [queued] = submitted(acme)
    path = {
        "calendar": f"/calendars/{calendar.pk}",
        "member": "/owners/acme/members/eve",
        "owner": "/owners/acme",
        "webhook": f"/webhooks/{hook.pk}",
        "run": f"/runs/{queued.id}",
    }[kind]
    client = caller(acme)
    etag = client.get(f"{ROOT}{path}")["ETag"]
    with behind(lambda: act(client, path, etag)) as (begin, outcomes):
        change_first(acme)
        begin()
    [answer] = outcomes
    problem(answer, 412, "precondition_failed")
    for row in (eve, calendar, hook, acme, queued):
        row.refresh_from_db()
    assert eve.role != Role.VIEWER and acme.paused_at is None and queued.state == State.QUEUED
