"""jobs/pages/kit/visit.py: who sees a page, of which owners, and in which form."""

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse

from jobs.core import barrier
from jobs.models import Owner
from jobs.models.access import access_of
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


def test_the_theme_is_kept_in_a_cookie(db: None, as_root: Client) -> None:
    """A wrong one is not kept, and nobody is sent to another site."""
    chosen = as_root.post(reverse("jobs:theme"), {"theme": "dark", "next": "/?owner="})
    assert chosen.url == "/?owner="
    assert b'data-theme="dark"' in as_root.get(OVERVIEW).content
    wrong = as_root.post(reverse("jobs:theme"), {"theme": "red", "next": "//evil.example/"})
    assert wrong.url == OVERVIEW and not wrong.cookies


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
