"""What a webhook, a mail or a feed shows: never more than its maker may see now (G29)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail as outbox
from django.test import Client

from jobs.calendars.ical_feed import feed_path, new_secret
from jobs.core import barrier
from jobs.core.errors import AccessDenied
from jobs.models import Membership, Owner, Role
from jobs.owners.tokens import make_token
from jobs.system.notices.endpoints import change_endpoint
from jobs.system.notices.mails import change_subscription
from tests.jobs.api.conftest import ROOT, client_of, post, problem
from tests.jobs.scenes import submitted
from tests.jobs.system.notices.scenes import Notices, end_runs, endpoint, later, subscribe
from tests.jobs.windows_world import calendar_of, window

pytestmark = pytest.mark.usefixtures("committed")

Change = Callable[[User], object]


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


def without(codename: str) -> Change:
    """Take a permission from a user."""
    return lambda user: user.user_permissions.remove(Permission.objects.get(codename=codename))


def role(given: Role) -> Change:
    """Give a user another role."""
    return lambda user: Membership.objects.filter(user=user).update(role=given)


STAYS: dict[str, Change] = {each.value: role(each) for each in Role}
LEAVES: dict[str, Change] = {
    "removed": lambda user: Membership.objects.filter(user=user).delete(),
    "deactivated": lambda user: User.objects.filter(pk=user.pk).update(is_active=False),
    "deleted": lambda user: User.objects.filter(pk=user.pk).delete(),
}
OF_RUNS = {**STAYS, **LEAVES, "without view_run": without("view_run")}
OF_CALENDARS = {**STAYS, **LEAVES, "without view_calendar": without("view_calendar")}


@pytest.mark.parametrize("by", ["user", "token", "code"])
@pytest.mark.parametrize("change", OF_RUNS)
def test_webhooks_and_mails_tell_what_their_maker_may_see(
    ann: User, notices: Notices, change: str, by: str
) -> None:
    """Else they are switched off with the reason; what waits is sent once an admin confirms."""
    acme = Owner.objects.get()
    actor: Any = {"user": ann, "code": None}.get(by)
    if by == "token":
        actor = make_token("robot", scopes=["read", "admin"], owner=acme, actor=ann).token
    hook = endpoint(acme, notices.ears, actor=actor)
    mail = subscribe(acme, actor=actor)
    OF_RUNS[change](ann)
    end_runs(acme)
    outcomes = set(notices.round())
    hook.refresh_from_db()
    mail.refresh_from_db()
    if by == "code" or change in STAYS:
        assert outcomes == {"delivered", "sent"} and hook.is_active and mail.is_active
        return
    assert outcomes == {"stopped"} and notices.ears.got == [] and outbox.outbox == []
    for row in (hook, mail):
        assert not row.is_active and row.disabled_at is not None
        assert "an admin" in row.disabled_reason
    bob = person(acme, "bob")
    change_endpoint(hook, {"is_active": True}, actor=bob)
    change_subscription(mail, {"is_active": True}, actor=bob)
    later()
    assert set(notices.round()) == {"delivered", "sent"}
    assert len(notices.ears.got) == 1


@pytest.mark.parametrize("change", OF_CALENDARS)
def test_a_feed_shows_what_its_maker_may_see(acme: Owner, ann: User, change: str) -> None:
    """Else its address is answered as an unknown one."""
    path = feed_path(new_secret(calendar_of(acme), actor=ann)) or ""
    assert Client().get(path).status_code == 200
    OF_CALENDARS[change](ann)
    assert Client().get(path).status_code == (200 if change in STAYS else 404)


def test_a_feed_counts_no_runs_that_its_maker_may_not_see(acme: Owner, ann: User) -> None:
    """The windows are shown all the same."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=3_600, seconds=3_600)
    submitted(acme, 3)
    path = feed_path(new_secret(calendar, actor=ann)) or ""
    assert b"3 runs planned" in Client().get(path).content
    without("view_run")(ann)
    content = Client().get(path).content
    assert b"Service window" in content and b"planned" not in content


@pytest.mark.parametrize("withheld", ["scope", "permission"])
def test_no_program_sees_runs_by_a_webhook(
    acme: Owner, ann: User, notices: Notices, withheld: str
) -> None:
    """An `admin` without `read`, or whose maker may not see runs: it reads no deliveries, sends
    none again, and makes no webhook or mail that would tell it.
    """
    url = notices.ears.url
    hook = endpoint(acme, url)
    [run] = end_runs(acme)
    notices.round()
    scopes = ["admin"] if withheld == "scope" else ["admin", "read"]
    if withheld == "permission":
        without("view_run")(ann)
    client = client_of(make_token("robot", scopes=scopes, owner=acme, actor=ann).secret)
    path = f"/webhooks/{hook.pk}"
    assert client.get(f"{ROOT}{path}").status_code == 200
    read = client.get(f"{ROOT}{path}/deliveries")
    problem(read, 403, "forbidden")
    assert str(run.id) not in read.content.decode()
    given = {"name": "own", "events": ["run.ended"]}
    for to, body in (
        (f"{path}/replay", {"deliveries": [1]}),
        ("/webhooks", {**given, "url": f"{url}/own"}),
        ("/mail-subscriptions", {**given, "addresses": ["me@acme.example"]}),
    ):
        assert post(client, to, body).status_code == 403, to
    barrier.lower()
    with pytest.raises(AccessDenied):
        endpoint(acme, url, actor=User.objects.create_user("x"))
