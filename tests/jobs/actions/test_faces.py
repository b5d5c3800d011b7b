"""jobs/actions: each action of the registry does the same in every face.

A new action is in the table by being declared; `cases` has what it needs beside its declaration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, reverse

from jobs.actions import Action, Noun, perform
from jobs.actions.registry import NOUNS
from jobs.core.errors import AccessDenied, NotFound, PermissionMissing, StaleRow
from jobs.models import AuditEntry, Membership, Owner
from jobs.models.access import access_of
from jobs.pages.kit.rows import address_of
from jobs.urls import urlpatterns
from tests.jobs.actions.cases import BODIES, NEW, READY, as_typed
from tests.jobs.admin.conftest import hidden, visible
from tests.jobs.api.conftest import ROOT, Caller, logged_in, post
from tests.jobs.api.matrix.rows import ROWS

pytestmark = pytest.mark.usefixtures("offered")

REASON: Final = "agreed by phone"
BY_USERS: Final = {"publish_calendar"}
"""Actions that are refused to tokens."""
PAGES: Final = {each.name for each in urlpatterns if isinstance(each, URLPattern)}
AUDITED: Final = {"backfill": "submission"}
"""The nouns whose actions are audited on another row, and its model."""
ALSO: Final[Mapping[str, tuple[str, ...]]] = {
    "enable_mail_subscription": ("view_run",),
    "enable_webhook": ("view_run",),
    "replay_webhook": ("view_run",),
}
"""Permissions that the verb of an action checks, beside the action's own."""


@dataclass(frozen=True)
class Case:
    """An action, and a row of acme that it applies to."""

    noun: Noun
    action: Action

    @property
    def id(self) -> str:
        return f"{self.action.name}_{self.noun.name}"

    @property
    def body(self) -> dict[str, Any]:
        return {"reason": REASON, **BODIES.get(self.id, {})}

    def row_of(self, owner: Owner) -> Any:
        row = ROWS[self.noun.name](owner)
        READY.get(self.id, lambda _row: None)(row)
        return row

    def key_of(self, row: Any) -> str:
        return str(getattr(row, self.noun.key))

    @property
    def has_page(self) -> bool:
        """Whether rows have a page outside the admin, with buttons."""
        return bool(self.noun.shown_by) or self.noun.name in PAGES

    def own(self, row: Any) -> str:
        """Return the page of a row, or of the row that shows it."""
        if not self.has_page:
            return reverse(f"admin:jobs_{self.noun.model_name}_change", args=[row.pk])
        if not self.noun.shown_by:
            return reverse(f"jobs:{self.noun.name}", args=[self.key_of(row)])
        address = address_of(getattr(row, self.noun.shown_by))
        assert address is not None
        return address

    def page_of_all(self) -> str:
        if self.has_page:
            return reverse(f"jobs:{self.noun.section or self.noun.plural}")
        return reverse(f"admin:jobs_{self.noun.model_name}_changelist")

    def asked_of_api(self, client: Client, row: Any) -> Any:
        path = f"/{self.noun.path}/{self.key_of(row)}"
        if isinstance(row, Membership):
            path = f"/owners/{row.owner.slug}/members/{row.user.get_username()}"
        headers = {"If-Match": "*"}
        if self.action.is_deletion:
            return client.delete(f"{ROOT}{path}?{urlencode(self.body)}", headers=headers)
        if self.action.method == "PATCH":
            own = {"content_type": "application/json", "headers": headers}
            return client.patch(f"{ROOT}{path}", self.body, **own)
        return post(client, f"{path}/{self.action.name}", self.body)

    @property
    def permissions(self) -> list[str]:
        """The permissions that its actor needs, and that to see its noun."""
        own = (each.partition(".")[2] for each in (self.action.permission, self.noun.view))
        return [*own, *ALSO.get(self.id, ())]

    def page(self, row: Any) -> str:
        return reverse(f"jobs:{self.noun.name}_action", args=[self.key_of(row), self.action.name])

    def fields(self) -> dict[str, Any]:
        """Return the body as a browser sends it."""
        return as_typed(self.body)


CASES: Final = [Case(noun, action) for noun in NOUNS for action in noun.actions]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
OF_OWNERS: Final = [case for case in CASES if case.noun.owner is not None]


def audited(case: Case) -> list[str]:
    """Return the actors of the entries about rows of its noun, with the reason of these scenes."""
    model = AUDITED.get(case.noun.name, case.noun.model_name)
    entries = AuditEntry.objects.filter(reason=REASON, object_type=model)
    return list(entries.values_list("actor_name", flat=True))


@each
def test_the_api_performs_it(case: Case, acme: Owner, caller: Caller) -> None:
    """With one entry of the audit; a row that does not exist is 404."""
    row = case.row_of(acme)
    client = caller() if case.noun.owner is None else caller(acme)
    if case.id in BY_USERS:
        assert case.asked_of_api(client, row).status_code == 409
        client = logged_in(*case.permissions, name="scene", acme="admin")
    answer = case.asked_of_api(client, row)
    assert answer.status_code in (200, 201, 202, 204), answer.content
    [actor] = audited(case)
    assert actor.removeprefix("token ").startswith("scene")


@each
def test_the_page_performs_it(case: Case, acme: Owner, as_root: Client) -> None:
    """Its button is on the row's page, a GET changes nothing, and the form acts once."""
    row = case.row_of(acme)
    own = case.own(row)
    assert not case.has_page or case.page(row) in as_root.get(own).content.decode()
    sent = case.fields()
    answer = as_root.get(case.page(row))
    # One that counts first asks twice.
    for _ in range(2 if case.action.is_counted else 1):
        assert not audited(case)
        answer = as_root.post(case.page(row), {**visible(answer), **hidden(answer), **sent})
    if case.action.secret is not None:
        assert answer.status_code == 200 and answer["Cache-Control"] == "no-store"
        assert own in answer.content.decode()
    else:
        to = case.page_of_all() if case.action.is_deletion else own
        assert answer.status_code == 302 and answer.url == to
    assert audited(case) == ["root"]


# A worker has no buttons in the admin; owners, members, calendars and jobs have forms.
FORMS: Final = {"change_owner", "delete_job", "change_calendar", "change_member", "delete_member"}
IN_ADMIN: Final = [case for case in OF_OWNERS if case.id not in FORMS]


@pytest.mark.parametrize("case", IN_ADMIN, ids=lambda case: case.id)
def test_the_admin_leads_to_the_page(case: Case, acme: Owner, as_root: Client) -> None:
    """And the page leads back to the row in the admin."""
    row = case.row_of(acme)
    model = f"admin:jobs_{case.noun.model_name}"
    change = reverse(f"{model}_change", args=[row.pk])
    button = reverse(f"{model}_actions", args=[row.pk, case.action.name])
    assert button in as_root.get(change).content.decode()
    page = as_root.get(button, follow=True)
    assert page.redirect_chain[-1][0].startswith(case.page(row))
    back = reverse(f"{model}_changelist") if case.action.is_deletion else change
    assert f'href="{back}"' in page.content.decode()


@pytest.mark.parametrize("case", OF_OWNERS, ids=lambda case: case.id)
def test_it_is_refused_alike(case: Case, acme: Owner, stranger: Owner, root: User) -> None:
    """A foreign row is as unknown as none; without the scope or the permission nothing moves."""
    mine, theirs = case.row_of(acme), case.row_of(stranger)
    logged_in(*case.permissions, name="olga", acme="admin")
    logged_in(*case.permissions, name="vera", acme="viewer")
    logged_in(name="bob", acme="admin")
    body = case.action.body(**case.body)

    def performed(name: str, key: str, **given: Any) -> Any:
        access = access_of(User.objects.get(username=name))
        return perform(case.noun, case.action, key, body, by=access, **given)

    for key in (case.key_of(theirs), "0", "\x00", str(2**80)):
        with pytest.raises(NotFound):
            performed("olga", key)
    with pytest.raises(AccessDenied):
        performed("vera", case.key_of(mine))
    with pytest.raises(PermissionMissing):
        performed("bob", case.key_of(mine))
    with pytest.raises(StaleRow):
        performed("olga", case.key_of(mine), is_version=lambda _row: False)
    assert not audited(case)
    performed("olga", case.key_of(mine))
    assert audited(case) == ["olga"]


MANY: Final = [case for case in IN_ADMIN if case.action.is_for_many]


@pytest.mark.parametrize("case", MANY, ids=lambda case: case.id)
def test_a_selection_is_narrowed(case: Case, acme: Owner, stranger: Owner) -> None:
    """Keys of other owners in a form have no effect; a selection of none says so."""
    mine, theirs = case.row_of(acme), case.row_of(stranger)
    olga = logged_in(*case.permissions, f"view_{mine._meta.model_name}", name="olga", acme="admin")
    url = reverse(f"admin:jobs_{mine._meta.model_name}_changelist")
    last = str(max(mine.pk, theirs.pk))
    see = case.noun.seen
    seen = ",".join(f"{row.pk}:{see(row)}" for row in (mine, theirs)) if see else ""
    sent = {"action": case.action.name, "select_across": "0", "counted": last, "seen": seen}
    for keys in ([theirs.pk, "0"], ["\x00", "nonsense"]):
        answer = olga.post(url, {**case.fields(), **sent, "_selected_action": keys})
        assert answer.status_code == 302 and not audited(case), keys
    olga.post(url, {**case.fields(), **sent, "_selected_action": [mine.pk, theirs.pk]})
    # Of many rows at once, the audit has an entry for the owner.
    entries = AuditEntry.objects.filter(reason=REASON)
    assert {(entry.actor_name, entry.owner) for entry in entries} == {("olga", acme)}


ON_ALL: Final = [case for case in CASES if case.action.act_on_all is not None]


@pytest.mark.parametrize("case", ON_ALL, ids=lambda case: case.id)
def test_the_api_performs_it_on_all_of_a_filter(
    case: Case, acme: Owner, stranger: Owner, caller: Caller
) -> None:
    """Of the caller's owners; a dry run counts; a filter without a field is refused."""
    case.row_of(acme), case.row_of(stranger)
    client, url = caller(acme), f"/{case.noun.plural}/{case.action.name}"
    body = {**case.body, "filter": {"task": "tests.add"}}
    count = post(client, url, {**body, "dry_run": True}).json()["matched"]
    assert count and not AuditEntry.objects.filter(reason=REASON).exists()
    assert post(client, url, {**body, "filter": {}}).status_code == 422
    answer = post(client, url, body).json()
    assert (answer["matched"], answer["moved"], answer["left"]) == (count, count, 0)
    assert {entry.owner for entry in AuditEntry.objects.filter(reason=REASON)} == {acme}


# --- creation -------------------------------------------------------------------------------

CREATED: Final = [noun for noun in NOUNS if noun.creation is not None]
created = pytest.mark.parametrize("noun", CREATED, ids=lambda noun: noun.name)


@pytest.fixture
def newcomer(db: None) -> User:
    return User.objects.create_user("newcomer")


@created
@pytest.mark.usefixtures("newcomer")
def test_the_api_creates_it(noun: Noun, acme: Owner, caller: Caller) -> None:
    """For an owner of the caller; its address is in the answer, and no secret is cached."""
    is_member = noun.name == "member"
    client = caller() if is_member or noun.name == "owner" else caller(acme)
    path = "/owners/acme/members" if is_member else f"/{noun.path}"
    before = noun.rows().count()
    answer = post(client, path, NEW[noun.name])
    assert answer.status_code == 201, answer.content
    assert noun.rows().count() == before + 1
    assert client.get(answer["Location"]).status_code == 200
    assert ("no-store" in answer.get("Cache-Control", "")) == bool(noun.creation.secret)
    assert post(client, path, {}).status_code == 422


@created
@pytest.mark.usefixtures("newcomer")
def test_the_page_creates_it(
    noun: Noun, acme: Owner, stranger: Owner, person: Callable[..., Client], as_root: Client
) -> None:
    """For an owner that its visitor administers, or for all by a superuser; a secret is shown."""
    url = reverse(f"jobs:create_{noun.name}")
    sent = {**visible(as_root.get(url)), **as_typed(NEW[noun.name]), "owner": "acme"}
    codes = (noun.creation.permission.partition(".")[2], "view_run")
    assert person("vera", *codes, acme="operator").get(url).status_code == 403
    ada = person("ada", *codes, acme="admin")
    before = noun.rows().count()
    for owner in ("stranger", ""):
        assert ada.post(url, {**sent, "owner": owner}).status_code in {200, 403}
    assert noun.rows().count() == before
    answer = as_root.post(url, sent)
    assert answer.status_code == (200 if noun.creation.secret else 302), answer.content
    assert ("no-store" in answer.get("Cache-Control", "")) == bool(noun.creation.secret)
    if noun.creation.secret:
        assert answer.context["secret"] in answer.content.decode()
    [row] = noun.rows().order_by("-pk")[:1]
    assert noun.owner_of(row) == (row.pk if noun.name == "owner" else acme.pk)
    if noun.creation.is_for_all:
        as_root.post(url, {**sent, "owner": ""})
        [row] = noun.rows().order_by("-pk")[:1]
        assert noun.owner_of(row) is None


@pytest.mark.parametrize("noun", [noun for noun in CREATED if noun.name in ("token", "webhook")])
def test_the_admin_leads_to_the_page_that_creates(noun: Noun, as_root: Client) -> None:
    """And only a visitor who may create is led there."""
    add = reverse(f"admin:jobs_{noun.model_name}_add")
    answer = as_root.get(add)
    assert answer.status_code == 302
    assert answer.url.startswith(reverse(f"jobs:create_{noun.name}"))
