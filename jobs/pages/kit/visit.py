"""One request for a page: who asks, for which owner, and how the answer is made.

`page` is the decorator of all views. It asks for a login, checks the permission, and raises the
barrier for the owners of the visitor. A view finds rows with `visit.rows`, and one row with
`actions.find`; for a row that the visitor does not see, the answer is 404.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any, Final, TypeVar

from django.conf import global_settings, settings
from django.contrib.auth.views import redirect_to_login
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy as _

from jobs.core import barrier
from jobs.core.errors import AccessDenied, NotFound, PermissionMissing
from jobs.models import Owner, Scope
from jobs.models.access import Access, access_of
from jobs.pages.kit import nav, polls
from jobs.pages.kit.errors import PageError, forbidden, not_found
from jobs.pages.kit.polls import PART
from jobs.pages.kit.zone import chosen_zone, in_reader_zone

THEME_COOKIE: Final = "fairshift_theme"
THEMES: Final = {"auto": _("as the system"), "light": _("light"), "dark": _("dark")}
OFFERED: Final = 50
"""Most owners that the switch offers; others are typed."""

Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request for a page."""

    request: HttpRequest
    access: Access
    owner: Owner | None
    """The owner that the visitor has chosen; None: all that the visitor sees."""
    name: str
    """The name of the page's entry in the navigation."""
    stamp: str | None = None
    """That of the answer to a poll, taken before any row is read."""

    def rows(self, rows: Rows, *, path: str = "owner") -> Rows:
        """Narrow rows to those that the visitor sees, and to the chosen owner."""
        seen = self.access.narrowed(rows, path=path)
        return seen if self.owner is None else seen.filter(**{path: self.owner.pk})

    def may(self, permission: str, scope: Scope, owner_id: int | None) -> bool:
        """Say whether the visitor may use a verb on a row of an owner."""
        return self.access.permits(permission) and self.access.has(scope, owner_id)

    def address(self, name: str, *arguments: Any, **query: Any) -> str | None:
        """Return the address of a page of ours with the chosen owner; None if there is none."""
        chosen = None if self.owner is None else self.owner.slug
        return nav.address(name, *arguments, **{"owner": chosen, **query})

    def admin_address(self, name: str, *arguments: Any, **query: Any) -> str | None:
        """Return the address of a page of the admin, such as "job_change"; None if not theirs."""
        if not self.request.user.is_staff:
            return None
        try:
            return reverse(f"admin:jobs_{name}", args=arguments, query=query or None)
        except NoReverseMatch:
            return None

    def show(
        self, template: str, *, live: str | None = None, status: int = 200, **facts: Any
    ) -> HttpResponse:
        """Return the page.

        `live` is the template of its live part, which the page includes. A request with PART gets
        this part only, or the answer 304. The part has no form: its CSRF token would change it.
        """
        if live is not None and PART in self.request.headers:
            return self._part(live, facts)
        response = render(self.request, template, {**self._frame(), **facts}, status=status)
        return _private(response)

    def _part(self, template: str, facts: dict[str, Any]) -> HttpResponse:
        text = render_to_string(template, {"visit": self, **facts})
        return _private(polls.answer_to(self.request, text, self.stamp))

    def _frame(self) -> dict[str, Any]:
        chosen = None if self.owner is None else self.owner.slug
        return {
            **frame_of(self.request),
            "visit": self,
            "nav": nav.links(self.name, owner=chosen),
            "search": nav.address(nav.SEARCH),
            "offered_owners": self._offered(),
        }

    def _offered(self) -> list[str]:
        rows = self.access.narrowed(Owner.objects.all(), path="pk").order_by("slug")
        return list(rows.values_list("slug", flat=True)[:OFFERED])


View = Callable[..., HttpResponse]


def page(name: str, *, permission: str, methods: tuple[str, ...] = ("GET",)) -> Any:
    """Make a function of a Visit a view: `@page("runs", permission="jobs.view_run")`.

    `name` is that of the page's entry in the navigation; `permission` one of Django's.
    """
    allowed = {*methods, *(("HEAD",) if "GET" in methods else ())}

    def made(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path(), login_address())
            if request.method not in allowed:
                return HttpResponseNotAllowed(sorted(allowed))
            with in_reader_zone(request):
                return shown(request, *arguments, **keywords)

        def shown(request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponse:
            try:
                access = _admitted(request, permission)
                stamp = polls.stamp_of(request, access)
                if (same := polls.unchanged(request, stamp)) is not None:
                    return _private(same)
                return view(_visit(request, access, name, stamp), *arguments, **keywords)
            except PageError as error:
                return show_error(request, error)
            except NotFound:
                return show_error(request, not_found())
            except (AccessDenied, PermissionMissing):
                return show_error(request, forbidden())
            finally:
                barrier.lower()

        return answer

    return made


def login_address() -> str:
    """Return the address of the login: the project's LOGIN_URL if it has one, else ours."""
    own = settings.LOGIN_URL != global_settings.LOGIN_URL
    return str(settings.LOGIN_URL) if own else reverse("jobs:login")


def frame_of(request: HttpRequest) -> dict[str, Any]:
    """Return what the base template needs on every page, with or without a login."""
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    return {
        "theme": theme if theme in THEMES else "auto",
        "themes": THEMES,
        "zone": timezone.get_current_timezone_name(),
        "chosen_zone": chosen_zone(request),
    }


def show_error(request: HttpRequest, error: PageError) -> HttpResponse:
    """Return the page of an error. It has no form and no word about the row: bytes are the same."""
    facts = {**frame_of(request), "error": error, "home": reverse("jobs:overview")}
    return _private(render(request, "jobs/pages/error.html", facts, status=error.status))


def _admitted(request: HttpRequest, permission: str) -> Access:
    access = access_of(request.user)
    if not access.permits(permission):
        raise forbidden()
    return access


def _visit(request: HttpRequest, access: Access, name: str, stamp: str | None) -> Visit:
    if not access.sees_all:
        barrier.raise_for(access.owner_ids())
    owner = _chosen(request, access)
    return Visit(request=request, access=access, owner=owner, name=name, stamp=stamp)


def _chosen(request: HttpRequest, access: Access) -> Owner | None:
    slug = request.GET.get("owner", "").strip()
    if not slug:
        return None
    rows = access.narrowed(Owner.objects.all(), path="pk")
    found = None if "\x00" in slug else rows.filter(slug=slug).first()
    if found is None:
        raise PageError(HTTPStatus.NOT_FOUND, _("owner: there is no such owner"))
    return found


def _private(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["Cookie", PART])
    return response
