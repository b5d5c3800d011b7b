"""Login, logout and the theme."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from jobs.pages.kit.visit import THEME_COOKIE, THEMES, frame_of

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
    """Remember the theme of this browser in a cookie, and return to the page."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}):
        back = reverse("jobs:overview")
    response = HttpResponseRedirect(back)
    if (chosen := request.POST.get("theme", "")) in THEMES:
        is_safe = request.is_secure()
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=YEAR, secure=is_safe, httponly=True, samesite="Lax"
        )
    return response
