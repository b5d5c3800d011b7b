"""Login, logout, and the theme and the time zone of a browser."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from jobs.core.zones import zone_names
from jobs.pages.kit.visit import THEME_COOKIE, THEMES, frame_of
from jobs.pages.kit.zone import CHOSEN_COOKIE

YEAR: Final = 365 * 86_400


class Login(LoginView):
    """The login page of a project without one of its own."""

    template_name = "jobs/pages/login.html"

    def get_context_data(self, **facts: Any) -> dict[str, Any]:
        return {**super().get_context_data(**facts), **frame_of(self.request)}

    def get_default_redirect_url(self) -> str:
        return reverse("jobs:overview")


class Logout(LogoutView):
    """The logout; a form sends it."""

    def get_default_redirect_url(self) -> str:
        return reverse("jobs:login")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember the theme and the time zone of this browser in cookies, and return to the page."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}):
        back = reverse("jobs:overview")
    response = HttpResponseRedirect(back)
    if (chosen := request.POST.get("theme", "")) in THEMES:
        _keep(request, response, THEME_COOKIE, chosen)
    zone = request.POST.get("zone", "").strip()
    if zone in zone_names():
        _keep(request, response, CHOSEN_COOKIE, zone)
    elif zone:
        messages.error(request, _("This is no time zone. Write it as Europe/Berlin."))
    elif "zone" in request.POST and CHOSEN_COOKIE in request.COOKIES:
        response.delete_cookie(CHOSEN_COOKIE, samesite="Lax")
    return response


def _keep(request: HttpRequest, response: HttpResponse, name: str, value: str) -> None:
    is_safe = request.is_secure()
    response.set_cookie(name, value, max_age=YEAR, secure=is_safe, httponly=True, samesite="Lax")
