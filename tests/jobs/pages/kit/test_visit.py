"""jobs/pages/kit/visit.py: who sees a page, of which owners, and in which form."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse

from jobs.core import barrier
from jobs.models import Owner
from jobs.models.access import access_of
from jobs.pages.kit import nav
from jobs.pages.kit.errors import PageError
from jobs.pages.kit.polls import PART
from jobs.pages.kit.visit import Visit, page

OVERVIEW = reverse("jobs:overview")


def visit_of(user: User, query: str = "", *, owner: Owner | None = None) -> Visit:
    """Return a visit of a user, whose request has this query."""
    request = RequestFactory().get(f"/x/?{query}")
    request.user = user
    return Visit(request=request, access=access_of(user), owner=owner, name="runs")


def test_a_visitor_without_a_login_is_sent_to_it_and_back(db: None, root: User) -> None:
    """With our own login page, as the project has named none; the theme is there, too."""
    client = Client()
    sent = client.get(f"{OVERVIEW}?owner=acme")
    assert sent.status_code == 302 and sent.url == f"{reverse('jobs:login')}?next=/%3Fowner%3Dacme"
    assert b"<form" in client.get(sent.url).content
    given = {"username": "root", "password": "root", "next": OVERVIEW}
    assert client.post(reverse("jobs:login"), given).url == OVERVIEW
    assert client.get(OVERVIEW).status_code == 200
    assert client.post(reverse("jobs:logout")).url == reverse("jobs:login")
    assert client.get(OVERVIEW).status_code == 302


def test_the_login_of_the_project_is_used_if_it_has_one(db: None, settings: object) -> None:
    """Such as that of a single sign-on."""
    settings.LOGIN_URL = "/sso/"  # type: ignore[attr-defined]
    assert Client().get(OVERVIEW).url == "/sso/?next=/"


def test_the_permission_is_needed(acme: Owner, person: Callable[..., Client]) -> None:
    """A member of an owner without it sees the answer 403, and nothing of the owner."""
    answer = person("mia", acme="viewer").get(OVERVIEW)
    assert answer.status_code == 403 and b"acme" not in answer.content


def test_an_owner_of_others_is_as_unknown_as_one_that_is_not_there(
    acme: Owner, stranger: Owner, person: Callable[..., Client]
) -> None:
    """Both answers have the same bytes."""
    client = person("mia", "view_run", acme="viewer")
    assert client.get(OVERVIEW, {"owner": "acme"}).status_code == 200
    foreign, unknown = (client.get(OVERVIEW, {"owner": slug}) for slug in ("stranger", "nobody"))
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.content == unknown.content
    assert client.get(OVERVIEW, {"owner": "a\x00b"}).content == unknown.content


def test_the_switch_offers_only_owners_that_the_visitor_sees(
    acme: Owner, stranger: Owner, person: Callable[..., Client]
) -> None:
    page = person("mia", "view_run", acme="viewer").get(OVERVIEW).content
    assert b'value="acme"' in page and b"stranger" not in page


def test_a_view_of_a_member_runs_behind_the_barrier(
    acme: Owner, stranger: Owner, root: User
) -> None:
    """A view that forgets to narrow its rows finds none of others; then the barrier is down."""
    found: list[str] = []

    @page("runs", permission="jobs.view_run")
    def careless(visit: Visit) -> HttpResponse:
        found.extend(Owner.objects.order_by("slug").values_list("slug", flat=True))
        return HttpResponse()

    member = User.objects.create_user("mia")
    member._perm_cache = {"jobs.view_run"}
    acme.memberships.create(user=member)
    request = RequestFactory().get("/x/")
    request.user = member
    careless(request)
    assert found == ["acme"] and not barrier.is_raised()
    request.user = root
    careless(request)
    assert found == ["acme", "acme", "stranger"]


def test_one_row_of_others_is_not_found(acme: Owner, stranger: Owner, root: User) -> None:
    """As is a key that no row can have."""
    member = User.objects.create_user("mia")
    acme.memberships.create(user=member)
    visit = visit_of(member)
    assert visit.one(Owner.objects.all(), path="pk", slug="acme") == acme
    for key in (
        {"slug": "stranger"},
        {"slug": "nobody"},
        {"pk": "x"},
        {"pk": 2**80},
        {"slug": "\x00"},
    ):
        with pytest.raises(PageError, match="no such page"):
            visit.one(Owner.objects.all(), path="pk", **key)


def test_rows_are_those_of_the_chosen_owner(acme: Owner, northwind: Owner, root: User) -> None:
    owners = Owner.objects.all()
    assert set(visit_of(root).rows(owners, path="pk")) == {acme, northwind}
    assert list(visit_of(root, owner=acme).rows(owners, path="pk")) == [acme]


def test_a_part_is_renewed_only_when_it_has_changed(db: None, root: User) -> None:
    """The live part has an ETag; without a change, the answer is 304 and empty."""
    template = "jobs/pages/parts/empty.html"
    visit = visit_of(root)
    visit.request.META[f"HTTP_{PART.upper().replace('-', '_')}"] = "1"
    first = visit.show("unused.html", live=template, text="nothing")
    assert first.content.strip() == b'<p class="empty">nothing</p>'
    visit.request.META["HTTP_IF_NONE_MATCH"] = first["ETag"]
    assert visit.show("unused.html", live=template, text="nothing").status_code == 304
    assert visit.show("unused.html", live=template, text="more").status_code == 200


def test_the_theme_is_kept_in_a_cookie(db: None, as_root: Client) -> None:
    """A wrong one is not kept, and nobody is sent to another site."""
    chosen = as_root.post(reverse("jobs:theme"), {"theme": "dark", "next": "/?owner="})
    assert chosen.url == "/?owner="
    assert b'data-theme="dark"' in as_root.get(OVERVIEW).content
    wrong = as_root.post(reverse("jobs:theme"), {"theme": "red", "next": "//evil.example/"})
    assert wrong.url == OVERVIEW and not wrong.cookies


def test_pages_that_are_not_there_are_not_in_the_navigation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nav, "ENTRIES", [("overview", "Overview", "o"), ("moon", "Moon", "m")])
    assert nav.links("overview", owner="acme") == [
        {"url": "/?owner=acme", "label": "Overview", "key": "o", "is_current": True}
    ]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("runs", "run"),
        ("submissions", "submission"),
        ("jobs", "job"),
        ("calendars", "calendar"),
        ("owners", "owner"),
        ("workers", "worker"),
        ("audit", "auditentry"),
    ],
)
def test_a_list_leads_to_its_list_in_the_admin(as_root: Client, name: str, model: str) -> None:
    """For people who may open it; the sidebar of the admin leads back to the overview."""
    there = reverse(f"admin:jobs_{model}_changelist")
    assert f'href="{there}"' in as_root.get(reverse(f"jobs:{name}")).content.decode()
    back = as_root.get(there).content.decode()
    assert f'href="http://testserver{reverse("jobs:overview")}"' in back
    User.objects.update(is_staff=False)
    assert there not in as_root.get(reverse(f"jobs:{name}")).content.decode()
