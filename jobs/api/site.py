"""The API as a whole: its resources, its errors, its document and their addresses.

A new resource is a module with a Router, and a line in RESOURCES.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.http import HttpRequest
from django.urls import URLPattern, path, re_path
from ninja import NinjaAPI, Router
from ninja.operation import Operation

from jobs.api import (
    audit,
    backfills,
    calendars,
    dead_letters,
    exports,
    mail_subscriptions,
    owners,
    runs,
    submissions,
    tasks,
    tokens,
    webhooks,
    windows,
    workers,
)
from jobs.api import jobs as job_resource
from jobs.api.jobs.bodies import JobToUpsert
from jobs.api.kit.answers import JsonRenderer
from jobs.api.kit.bodies import StrictParser
from jobs.api.kit.callers import Token, needs
from jobs.api.kit.document import complete
from jobs.api.kit.errors import handle_errors
from jobs.api.kit.front import fronted, unknown_address
from jobs.api.kit.queries import refuse_unknown
from jobs.api.kit.swagger import swagger
from jobs.catalog.registry import OfferedTask, offered
from jobs.core.version import __version__
from jobs.models import Scope

RESOURCES: Final = (
    ("/tasks", tasks.router),
    ("/runs", runs.router),
    ("/submissions", submissions.router),
    ("/calendars", calendars.router),
    ("/windows", windows.router),
    ("/jobs", job_resource.router),
    ("/backfills", backfills.router),
    ("/tokens", tokens.router),
    ("/webhooks", webhooks.router),
    ("/mail-subscriptions", mail_subscriptions.router),
    ("/owners", owners.router),
    ("/workers", workers.router),
    ("/dead-letters", dead_letters.router),
    ("/audit", audit.router),
    ("/exports", exports.router),
)
"""Each resource by its path, with a router."""

ELEMENTS: Final = {"JobsToUpsert": ("jobs", JobToUpsert)}
"""Bodies with a list whose elements the operation checks itself: the list, and their schema."""

DESCRIPTION: Final = """
Runs jobs for many owners, fairly. Rows of other owners do not exist for a caller. Every answer that
is no success is a problem (RFC 9457) with a stable `code`.
"""


def make_api() -> NinjaAPI:
    """Return the API with all resources."""
    api = NinjaAPI(
        title="Fairshift",
        version=__version__,
        description=DESCRIPTION.strip(),
        urls_namespace="api",
        # Its own pages load scripts from elsewhere; ours are below.
        docs_url=None,
        openapi_url=None,
        parser=StrictParser(),
        renderer=JsonRenderer(),
    )
    handle_errors(api)
    for prefix, router in RESOURCES:
        api.add_router(prefix, router)
    api.add_router("", _document)
    refuse_unknown(_operations(api))
    return api


def document(*, tasks: Iterable[OfferedTask], prefix: str) -> dict[str, Any]:
    """Return the OpenAPI document, with typed bodies for these tasks.

    `prefix` is the path of the API.
    """
    found = dict(api.get_openapi_schema(path_prefix=prefix))
    return complete(found, tasks=tasks, scopes=_scopes(), elements=ELEMENTS)


_document: Final = Router()


@_document.get("/openapi.json", auth=needs(Scope.READ, "jobs.view_run"), include_in_schema=False)
def openapi(request: HttpRequest) -> dict[str, Any]:
    """Return the OpenAPI document, with the tasks that are on offer here."""
    return document(tasks=offered(), prefix=request.path.removesuffix("openapi.json"))


def _scopes() -> dict[str, str]:
    """Return the scope that each operation needs, by the operation's id."""
    found = {}
    for operation in _operations(api):
        [token] = [one for one in operation.auth_callbacks if isinstance(one, Token)]
        found[api.get_openapi_operation_id(operation)] = token.scope.value
        if operation.operation_id:
            found[operation.operation_id] = token.scope.value
    return found


def _operations(api: NinjaAPI) -> Iterator[Operation]:
    for router in api._get_bound_routers():
        for view in router.path_operations.values():
            yield from view.operations


api: Final = make_api()


def urlpatterns() -> list[URLPattern]:
    """Return the addresses of all operations, of the Swagger page, and of all that is neither."""
    operations = [fronted(pattern) for pattern in api.urls[0] if isinstance(pattern, URLPattern)]
    return [
        *operations,
        path("docs", swagger, name="docs"),
        re_path(r"", unknown_address, name="unknown"),
    ]
