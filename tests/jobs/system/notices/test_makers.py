"""What a webhook, a mail or a feed shows: never more than its maker may see now (G29)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail as outbox
from django.test import Client
from pytest_django import Settings

from jobs.calendars.ical_feed import feed_path, new_secret
from jobs.core import barrier
from jobs.core.errors import AccessDenied
from jobs.models import MailSubscription, Membership, Owner, Role, WebhookEndpoint
from jobs.owners.tokens import make_token
from jobs.system.notices.endpoints import change_endpoint, make_endpoint
from jobs.system.notices.mails import change_subscription, make_subscription
from tests.jobs.api.conftest import ROOT, client_of, post, problem
from tests.jobs.scenes import submitted
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, later
from tests.jobs.windows_world import calendar_of, window
from tests.receivers import Receiver

pytestmark = pytest.mark.usefixtures("committed")

Messages = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _allowed(settings: Settings, ears: Receiver) -> None:
    """The receiver may be sent to."""
    allow(settings, ears)


@pytest.fixture
def ann(acme: Owner) -> Iterator[User]:
    """An admin of acme who may see its runs and calendars."""
    user = person(acme, "ann")
    yield user
    barrier.lower()
    User.objects.all().delete()


def person(owner: Owner, name: str) -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="jobs"))
    Membership.objects.create(owner=owner, user=user, role=Role.ADMIN)
    return User.objects.get(pk=user.pk)


def role(given: Role) -> Callable[[User], None]:
    def change(user: User) -> None:
        Membership.objects.filter(user=user).update(role=given)

    change.__name__ = given.value
    return change


def without(codename: str) -> Callable[[User], None]:
    def change(user: User) -> None:
        user.user_permissions.remove(Permission.objects.get(codename=codename))

    change.__name__ = f"without {codename}"
    return change


def removed(user: User) -> None:
    Membership.objects.filter(user=user).delete()


def deactivated(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def deleted(user: User) -> None:
    User.objects.filter(pk=user.pk).delete()


STAYS = [role(each) for each in Role]
RUNS_END = [without("view_run"), removed, deactivated, deleted]
CALENDARS_END = [without("view_calendar"), removed, deactivated, deleted]


@pytest.mark.parametrize("by", ["user", "token", "code"])
@pytest.mark.parametrize("change", [*STAYS, *RUNS_END], ids=lambda one: one.__name__)
def test_webhooks_and_mails_tell_what_their_maker_may_see(
    ann: User, ears: Receiver, messages: Messages, change: Callable[[User], None], by: str
) -> None:
    """Else they are switched off with the reason; what waits is sent once an admin confirms."""
    acme = Owner.objects.get()
    actor: Any = {"user": ann, "code": None}.get(by)
    if by == "token":
        actor = make_token("robot", scopes=["read", "admin"], owner=acme, actor=ann).token
    given = {"name": "ci", "events": ["run.ended"]}
    hook = make_endpoint({**given, "url": ears.url}, owner=acme, actor=actor).endpoint
    mail = make_subscription({**given, "addresses": ["ops@acme.example"]}, owner=acme, actor=actor)
    change(ann)
    end_runs(acme)
    collect()
    outcomes = set(carry_out(messages))
    rows = [WebhookEndpoint.objects.get(pk=hook.pk), MailSubscription.objects.get(pk=mail.pk)]
    if by == "code" or change in STAYS:
        assert outcomes == {"delivered", "sent"} and all(row.is_active for row in rows)
        return
    assert outcomes == {"stopped"} and ears.got == [] and outbox.outbox == []
    for row in rows:
        assert not row.is_active and row.disabled_at is not None
        assert "an admin" in row.disabled_reason
    bob = person(acme, "bob")
    change_endpoint(rows[0], {"is_active": True}, actor=bob)
    change_subscription(rows[1], {"is_active": True}, actor=bob)
    later()
    collect()
    assert set(carry_out(messages)) == {"delivered", "sent"}
    assert len(ears.got) == 1


@pytest.mark.parametrize("change", [*STAYS, *CALENDARS_END], ids=lambda one: one.__name__)
def test_a_feed_shows_what_its_maker_may_see(
    acme: Owner, ann: User, change: Callable[[User], None]
) -> None:
    """Else its address is answered as an unknown one."""
    path = feed_path(new_secret(calendar_of(acme), actor=ann))
    assert Client().get(path).status_code == 200
    change(ann)
    assert Client().get(path).status_code == (200 if change in STAYS else 404)


def test_a_feed_counts_no_runs_that_its_maker_may_not_see(acme: Owner, ann: User) -> None:
    """The windows are shown all the same."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=3_600, seconds=3_600)
    submitted(acme, 3)
    path = feed_path(new_secret(calendar, actor=ann))
    assert b"3 runs planned" in Client().get(path).content
    without("view_run")(ann)
    content = Client().get(path).content
    assert b"Service window" in content and b"planned" not in content


@pytest.mark.parametrize("withheld", ["scope", "permission"])
def test_no_program_sees_runs_by_a_webhook(
    acme: Owner, ann: User, ears: Receiver, messages: Messages, withheld: str
) -> None:
    """An `admin` without `read`, or whose maker may not see runs: it reads no deliveries, sends
    none again, and makes no webhook or mail that would tell it.
    """
    hook = make_endpoint({"name": "ci", "url": ears.url, "events": ["run.ended"]}, owner=acme)
    [run] = end_runs(acme)
    collect()
    carry_out(messages)
    scopes = ["admin"] if withheld == "scope" else ["admin", "read"]
    if withheld == "permission":
        without("view_run")(ann)
    client = client_of(make_token("robot", scopes=scopes, owner=acme, actor=ann).secret)
    path = f"/webhooks/{hook.endpoint.pk}"
    assert client.get(f"{ROOT}{path}").status_code == 200
    read = client.get(f"{ROOT}{path}/deliveries")
    problem(read, 403, "forbidden")
    assert str(run.id) not in read.content.decode()
    given = {"name": "own", "events": ["run.ended"]}
    for to, body in (
        (f"{path}/replay", {"deliveries": [1]}),
        ("/webhooks", {**given, "url": f"{ears.url}/own"}),
        ("/mail-subscriptions", {**given, "addresses": ["me@acme.example"]}),
    ):
        assert post(client, to, body).status_code == 403, to
    barrier.lower()
    with pytest.raises(AccessDenied):
        make_endpoint({**given, "url": ears.url}, owner=acme, actor=User.objects.create_user("x"))
