"""The Swagger page: the API, to be read and tried by a user of the admin."""

from __future__ import annotations

from typing import Final

from django.apps import apps
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from jobs.api.kit.front import in_english
from jobs.api.kit.problems import as_response, not_found

SCRIPTS: Final = "ninja"
"""The app in INSTALLED_APPS with the static files of Swagger; without it there is no page."""


@login_required(login_url="admin:login")
def swagger(request: HttpRequest) -> HttpResponseBase:
    """Show the page; its scripts and styles are files of our own server."""
    if not apps.is_installed(SCRIPTS):
        return in_english(as_response(not_found()))
    return in_english(render(request, "jobs/swagger.html"))
