"""Which answer each error gets, in one place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from django.core.exceptions import ObjectDoesNotExist
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from jobs.api.kit.etags import stale
from jobs.api.kit.problems import Problem, as_response, not_found
from jobs.core import log_events
from jobs.core.errors import (
    AccessDenied,
    ActionRefused,
    ApprovalRefused,
    ArgumentError,
    BatchError,
    FairshiftError,
    FieldError,
    IcalError,
    IdempotencyConflict,
    LastAdmin,
    LimitExceeded,
    NotFound,
    OptionError,
    PayloadTooLarge,
    PermissionMissing,
    StaleRow,
    StateConflict,
    UnknownOwner,
    UnknownTask,
)
from jobs.core.strict_json import JsonError

logger = logging.getLogger(__name__)

LIMITS: Final = ("le", "lt", "ge", "gt", "max_length", "min_length")
"""The names of limits in errors of pydantic."""
AWAY_SECONDS: Final = 2
"""Retry-After when PostgreSQL does not answer."""


def handle_errors(api: NinjaAPI) -> None:
    """Make an API answer every error with problem details."""

    def answered(error_class: type[Exception], problem_of: Callable[[Any], Problem]) -> None:
        def handle(_request: HttpRequest, error: Any) -> HttpResponse:
            return as_response(problem_of(error))

        api.add_exception_handler(error_class, handle)

    answered(Problem, lambda problem: problem)
    answered(FairshiftError, of_error)
    answered(ValidationError, _of_validation)
    answered(AuthenticationError, lambda _error: unauthorized())
    answered(HttpError, _of_http)
    answered(Http404, lambda _error: not_found())
    # The caller does not see the row, or another one has deleted it before it was locked.
    answered(ObjectDoesNotExist, lambda _error: not_found())
    answered(JsonError, of_json)
    answered(OperationalError, _away)
    answered(InterfaceError, _away)
    api.add_exception_handler(Exception, _unexpected)


def unauthorized() -> Problem:
    """Return the answer to a caller without a usable token or session."""
    return Problem(
        401,
        "unauthorized",
        "Send a token that is neither revoked nor expired: Authorization: Bearer …",
        headers={"WWW-Authenticate": "Bearer"},
    )


def of_json(error: JsonError) -> Problem:
    """Return the answer to a body that is not accepted as JSON."""
    return Problem(400, error.code, error.problem, field=error.field, limit=error.limit)


ANSWERS: Final[Mapping[type[FairshiftError], tuple[int, str, str]]] = {
    UnknownTask: (422, "unknown_task", "task"),
    PayloadTooLarge: (413, "payload_too_large", "arguments"),
    AccessDenied: (403, "forbidden", ""),
    PermissionMissing: (403, "forbidden", ""),
    ApprovalRefused: (403, "approval_refused", ""),
    LastAdmin: (409, "last_admin", ""),
    IdempotencyConflict: (409, "idempotency_conflict", "Idempotency-Key"),
    StateConflict: (409, "state_conflict", ""),
}
"""The status, the code and the field of the answer to each error that needs no more than these."""


def of_error(error: FairshiftError) -> Problem:
    """Return the answer to one of our errors; it names the field where there is one."""
    match error:
        case NotFound():
            return not_found()
        case StaleRow():
            return stale()
        case ArgumentError(field=field):
            # In the body, not in the call: an option may have the name of an argument.
            field = field if field == "arguments" else f"arguments.{field}"
            return Problem(422, "invalid", str(error), field=field)
        case FieldError(field=field) | OptionError(option=field):
            return Problem(422, "invalid", str(error), field=field)
        case UnknownOwner(slug=slug):
            # The caller's text only: whether an owner of that name exists is not said.
            return Problem(422, "unknown_owner", f"there is no owner {slug!r}", field="owner")
        case ActionRefused(code=code):
            return Problem(409, code, str(error))
        case LimitExceeded(name=name, limit=limit, retry_after_seconds=seconds):
            headers = {"Retry-After": str(seconds)}
            return Problem(429, name, str(error), limit=limit, headers=headers)
        case IcalError():
            return _with_each(error, _of_lines(error))
        case BatchError():
            return _with_each(error, _of_batch(error))
    status, code, field = ANSWERS.get(type(error), (422, "invalid", ""))
    return Problem(status, code, str(error), field=field, limit=getattr(error, "limit", None))


def _with_each(error: FairshiftError, faults: Iterable[dict[str, Any]]) -> Problem:
    errors = list(faults)
    return Problem(422, "invalid", str(error), field=errors[0]["field"], errors=errors)


def _of_lines(error: IcalError) -> Iterator[dict[str, Any]]:
    for line, problem in error.problems:
        detail = problem if line is None else f"line {line}: {problem}"
        yield {"field": "file", "detail": detail}


def _of_batch(error: BatchError) -> Iterator[dict[str, Any]]:
    for index, one in error.problems:
        problem = of_error(one)
        own = problem.field.removeprefix("arguments").lstrip(".")
        path = ".".join(part for part in ("arguments", str(index), own) if part)
        yield {"index": index, "field": path, "detail": problem.detail}


def _of_http(error: HttpError) -> Problem:
    """Return the answer to an error of django-ninja; of a body, the answer to what it hides."""
    if isinstance(error.__cause__, JsonError):
        return of_json(error.__cause__)
    if error.status_code == 403:
        return Problem(403, "csrf_failed", "Send the CSRF token of the session in X-CSRFToken.")
    return Problem(error.status_code, "refused", str(error))


def _of_validation(error: ValidationError) -> Problem:
    errors = [_of_fault(fault) for fault in error.errors]
    detail = f"{errors[0]['field']}: {errors[0]['detail']}"
    context = error.errors[0].get("ctx", {})
    limits = [context[name] for name in LIMITS if isinstance(context.get(name), int | float)]
    limit = limits[0] if limits else None
    return Problem(422, "invalid", detail, field=errors[0]["field"], limit=limit, errors=errors)


def _of_fault(fault: dict[str, Any]) -> dict[str, Any]:
    source, *path = fault["loc"]
    # The name of our parameter is no part of what the caller wrote. Of a query, django-ninja leaves
    # it out itself, but for elements of lists.
    is_ours = len(path) > (1 if source == "body" else 2) and source in ("body", "query")
    steps = path[1:] if is_ours else path
    field = ".".join(str(step) for step in steps) or str(source)
    # Half a character in a caller's name cannot be sent back.
    named = field.encode(errors="backslashreplace").decode()[:200]
    return {"field": named, "detail": detail_of(fault)}


def detail_of(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a field.

    Pydantic says "items" for characters of texts that we validate, too.
    """
    context = fault.get("ctx", {})
    if context.get("field_type") == "Value" and "actual_length" in context:
        most = "max_length" in context
        limit = context["max_length" if most else "min_length"]
        bound = "most" if most else "least"
        return f"should have at {bound} {limit:,} characters, not {context['actual_length']:,}"
    text: str = fault["msg"]
    # Of a validator of ours.
    return text.removeprefix("Value error, ")


def _away(error: Exception) -> Problem:
    # With a SQLSTATE it has answered: its disk is full, for example.
    cause = error.__cause__
    has_answered = getattr(cause, "sqlstate", None)
    why = f"cannot do this now ({type(cause).__name__})" if has_answered else "does not answer"
    return Problem(
        503,
        "database_away",
        f"PostgreSQL {why}; nothing was stored. Repeat the request.",
        headers={"Retry-After": str(AWAY_SECONDS)},
    )


def _unexpected(request: HttpRequest, error: Any) -> HttpResponse:
    """Answer a fault of ours without its text, and log it as Django does."""
    facts = {"method": request.method, "path": request.path}
    log_events.REQUEST_FAILED.log(logger, exc_info=error, **facts)
    got_request_exception.send(sender=None, request=request)
    return as_response(Problem(500, "internal", "This is a fault of the server; it was logged."))
