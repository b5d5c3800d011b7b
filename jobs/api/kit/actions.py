"""The operations of a noun's actions, from their declarations.

`POST /<nouns>/<key>/<action>` is about one row, `POST /<nouns>/<action>` about those of a filter;
a change and a deletion are `PATCH` and `DELETE /<nouns>/<key>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Final
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from ninja import Header, Query, Router, Schema, Status
from pydantic import Field, create_model

from jobs.actions import Action, Done, Noun, create, creation_of, find_all, perform, perform_on_all
from jobs.actions.filters.declared import Filter
from jobs.actions.owning import owner_of_new
from jobs.actions.texts import Key
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import IF_MATCH, IF_MATCH_OPTIONAL, version_check
from jobs.api.kit.problems import Problem
from jobs.core import barrier
from jobs.models import Owner, Scope

IdempotencyKey = Annotated[
    Key | None,
    Header(
        alias="Idempotency-Key",
        description="The same key of the same owner makes one run; repeat a request with it.",
    ),
]

KeyOf = Callable[[HttpRequest, Mapping[str, Any]], Any]
"""Return the key of a row, of the parameters of an address."""
_GIVEN: Final = Parameter.POSITIONAL_OR_KEYWORD


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an operation answers after its action."""

    schema: Any
    of: Callable[[HttpRequest, HttpResponse, Done], Any]
    status: int = 200


GONE: Final = Answer(schema=None, of=lambda *_given: Status(204, None), status=204)
"""The answer to a deletion."""


def of_row(schema: Any, etag_of: Callable[[Any], str]) -> Answer:
    """Return the answer that shows the row of an action, with its ETag."""

    def of(_request: HttpRequest, response: HttpResponse, done: Done) -> Any:
        response["ETag"] = etag_of(done.row)
        with barrier.lifted():
            return schema.of(done.row)

    return Answer(schema=schema, of=of)


def serve(
    router: Router,
    noun: Noun,
    address: str,
    answer: Answer,
    *,
    etag_of: Callable[[Any, HttpRequest], str] | None = None,
    answers: Mapping[str, Answer] | None = None,
    key_of: KeyOf | None = None,
) -> None:
    """Add an operation for each action of a noun.

    `address` has the parameter of its rows, such as `{int:job_id}`; `key_of` returns the key of a
    row from several. `answer` shows the row;
    `answers` has others, by the name of an action. With `etag_of`, actions that lock the row
    compare `If-Match` if it is sent; a change and a deletion need it.
    """
    for action in noun.actions:
        given = GONE if action.is_deletion else (answers or {}).get(action.name, answer)
        is_post = action.method == "POST"
        compares = etag_of if action.locks or not is_post else None
        extra = IF_MATCH_OPTIONAL if is_post else IF_MATCH
        router.api_operation(
            [action.method],
            f"/{address}/{action.name}" if is_post else f"/{address}",
            auth=needs(action.scope, action.permission),
            response={given.status: given.schema},
            operation_id=f"{action.name}_{noun.name}",
            openapi_extra=extra if compares else None,
        )(_operation(noun, action, address, given, etag_of=compares, key_of=key_of))


def serve_creation(
    router: Router,
    noun: Noun,
    answer: Answer,
    *,
    address: str = "",
    owner_of: Callable[[HttpRequest, Mapping[str, Any]], Owner] | None = None,
    key: str | None = None,
) -> None:
    """Add the operation that creates a row of a noun.

    `owner_of` returns the owner from the parameters of the address; else the body names it. `key`
    is the field of the answer that names the row in its address.
    """
    creation = creation_of(noun)

    def operation(request: HttpRequest, response: HttpResponse, body: Any, **given: Any) -> Any:
        access = caller(request)
        owner = owner_of(request, given) if owner_of else owner_of_new(access, body)
        done = create(noun, body, owner=owner, by=access)
        if creation.secret is not None:
            response["Cache-Control"] = "no-store"
        shown = answer.of(request, response, done)
        named = quote(str(getattr(shown, key or "id")), safe="")
        response["Location"] = f"{request.path}/{named}"
        return shown

    made: Any = operation
    made.__signature__ = Signature(
        [*_parameters(address), Parameter("body", _GIVEN, annotation=creation.body)]
    )
    made.__name__ = f"create_{noun.name}"
    made.__doc__ = creation.explains or f"{creation.label}."
    router.post(
        address,
        auth=needs(Scope.ADMIN, creation.permission),
        response={201: answer.schema},
        operation_id=f"create_{noun.name}",
    )(made)


class BulkResult(Schema):
    """The effect on all rows of a filter; of a dry run, the number of rows that it would move."""

    matched: int = Field(description="Rows of the filter that the action can move, up to 100,000.")
    moved: int
    left: int = Field(description="Not reached in time: repeat the request.")
    dry_run: bool


def serve_all(router: Router, noun: Noun, filters: type[Filter]) -> None:
    """Add an operation on all rows of a filter for each action that moves many rows at once."""
    for action in noun.actions:
        if action.act_on_all is not None:
            router.post(
                f"/{action.name}",
                auth=needs(action.scope, action.permission),
                response=BulkResult,
                operation_id=f"{action.name}_{noun.plural}",
            )(_operation_on_all(noun, action, filters))


def _operation_on_all(noun: Noun, action: Action, filters: type[Filter]) -> Callable[..., Any]:
    chosen = Field(description=f"The {noun.plural}; it has at least one filter.")
    dry_run = Field(False, description="Count only, and change nothing.")
    given: dict[str, Any] = {"filter": (filters, chosen), "dry_run": (bool, dry_run)}
    schema: Any = create_model(
        f"{noun.plural}_to_{action.name}".title().replace("_", ""),
        __base__=action.many,
        __doc__=f"The {noun.plural} of a filter.",
        **given,
    )

    def operation(request: HttpRequest, body: Any) -> BulkResult:
        if not body.filter.model_fields_set:
            raise Problem(422, "invalid", "filter: names at least one filter", field="filter")
        access = caller(request)
        rows = body.filter.narrow(noun.rows(), access=access)
        found = find_all(noun, action, rows, by=access)
        if body.dry_run:
            return BulkResult(matched=len(found), moved=0, left=0, dry_run=True)
        done = perform_on_all(noun, action, found, body, by=access)
        return BulkResult(matched=len(found), moved=done.moved, left=done.left, dry_run=False)

    made: Any = operation
    made.__signature__ = Signature(
        [
            Parameter("request", _GIVEN, annotation=HttpRequest),
            Parameter("body", _GIVEN, annotation=schema),
        ]
    )
    made.__name__ = f"{action.name}_{noun.plural}"
    made.__doc__ = f"{action.label}: all {noun.plural} of a filter. {action.explains}"
    return made


def _operation(
    noun: Noun,
    action: Action,
    address: str,
    answer: Answer,
    *,
    etag_of: Callable[[Any, HttpRequest], str] | None,
    key_of: KeyOf | None,
) -> Callable[..., Any]:
    own = _parameters(address)

    def operation(request: HttpRequest, response: HttpResponse, **given: Any) -> Any:
        done = perform(
            noun,
            action,
            key_of(request, given) if key_of else given[own[-1].name],
            given["body"],
            by=caller(request),
            once=given.get("idempotency_key"),
            is_version=version_check(request, etag_of, is_required=action.method != "POST"),
        )
        return answer.of(request, response, done)

    body: Any = Annotated[action.body, Query()] if action.is_deletion else action.body
    parameters = [*own, Parameter("body", _GIVEN, annotation=body)]
    if action.takes_once:
        parameters.append(
            Parameter("idempotency_key", _GIVEN, annotation=IdempotencyKey, default=None)
        )
    made: Any = operation
    made.__signature__ = Signature(parameters)
    made.__name__ = f"{action.name}_{noun.name}"
    made.__doc__ = action.explains
    return operation


def _parameters(address: str) -> list[Parameter]:
    """Return the request, its response, and the parameters of an address."""
    return [
        Parameter("request", _GIVEN, annotation=HttpRequest),
        Parameter("response", _GIVEN, annotation=HttpResponse),
        *(
            Parameter(name, _GIVEN, annotation=int if kind == "int" else str)
            for kind, name in re.findall(r"\{(?:(\w+):)?(\w+)\}", address)
        ),
    ]
