"""The answers for programs: metrics, and the health of this web process."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from jobs.pages.metrics.access import admission_of
from jobs.pages.metrics.health import readiness
from jobs.pages.metrics.scrape import scraped

UNSTORED: Final = {"Cache-Control": "no-store"}


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics to a program that may scrape; to others an empty refusal."""
    admission = admission_of(request)
    if admission.status is not HTTPStatus.OK:
        headers = dict(UNSTORED)
        if admission.status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        return HttpResponse(status=admission.status, headers=headers)
    content = scraped(is_database_away=admission.is_database_away)
    return HttpResponse(content, content_type=CONTENT_TYPE_PLAIN_0_0_4, headers=UNSTORED)


# A request with a token needs no session: see `jobs/api/kit/lean.py`.
_metrics: Any = metrics
_metrics.is_operation = True


@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """Say that this process answers. Nothing is asked."""
    return JsonResponse({"is_live": True}, headers=UNSTORED)


@require_safe
def ready(_request: HttpRequest) -> HttpResponse:
    """Say whether this process can serve requests, and why not: 200 or 503."""
    found = readiness()
    status = HTTPStatus.OK if found.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return JsonResponse(found.as_json(), status=status, headers=UNSTORED)
