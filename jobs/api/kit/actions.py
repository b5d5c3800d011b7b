"""The operations of a noun's actions, from their declarations.

`POST /<nouns>/<key>/<action>`; a change and a deletion are `PATCH` and `DELETE /<nouns>/<key>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Header, Query, Router, Status

from jobs.actions import Action, Done, Noun, perform
from jobs.actions.texts import Key
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import IF_MATCH, IF_MATCH_OPTIONAL, version_check

IdempotencyKey = Annotated[
    Key | None,
    Header(
        alias="Idempotency-Key",
        description="The same key of the same owner makes one run; repeat a request with it.",
    ),
]

_GIVEN: Final = Parameter.POSITIONAL_OR_KEYWORD


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an operation answers after its action."""

    schema: Any
    of: Callable[[HttpRequest, HttpResponse, Done], Any]
    status: int = 200


GONE: Final = Answer(schema=None, of=lambda *_given: Status(204, None), status=204)
"""The answer to a deletion."""


def serve(
    router: Router,
    noun: Noun,
    address: str,
    answer: Answer,
    *,
    etag_of: Callable[[Any, HttpRequest], str] | None = None,
    answers: Mapping[str, Answer] | None = None,
) -> None:
    """Add an operation for each action of a noun.

    `address` has the parameter of its rows, such as `{int:job_id}`. `answer` shows the row;
    `answers` has others, by the name of an action. With `etag_of`, actions that lock the row
    compare `If-Match` if it is sent; a change and a deletion need it.
    """
    for action in noun.actions:
        compares = etag_of if action.locks else None
        given = GONE if action.is_deletion else (answers or {}).get(action.name, answer)
        is_post = action.method == "POST"
        extra = IF_MATCH_OPTIONAL if is_post else IF_MATCH
        router.api_operation(
            [action.method],
            f"/{address}/{action.name}" if is_post else f"/{address}",
            auth=needs(action.scope, action.permission),
            response={given.status: given.schema},
            operation_id=f"{action.name}_{noun.name}",
            openapi_extra=extra if compares else None,
        )(_operation(noun, action, address, given, compares))


def _operation(
    noun: Noun,
    action: Action,
    address: str,
    answer: Answer,
    etag_of: Callable[[Any, HttpRequest], str] | None,
) -> Callable[..., Any]:
    [(kind, name)] = re.findall(r"\{(?:(\w+):)?(\w+)\}", address)

    def operation(request: HttpRequest, response: HttpResponse, **given: Any) -> Any:
        done = perform(
            noun,
            action,
            given[name],
            given["body"],
            by=caller(request),
            once=given.get("idempotency_key"),
            is_version=version_check(request, etag_of, is_required=action.method != "POST"),
        )
        return answer.of(request, response, done)

    body: Any = Annotated[action.body, Query()] if action.is_deletion else action.body
    parameters = [
        Parameter("request", _GIVEN, annotation=HttpRequest),
        Parameter("response", _GIVEN, annotation=HttpResponse),
        Parameter(name, _GIVEN, annotation=int if kind == "int" else str),
        Parameter("body", _GIVEN, annotation=body),
    ]
    if action.takes_once:
        parameters.append(
            Parameter("idempotency_key", _GIVEN, annotation=IdempotencyKey, default=None)
        )
    made: Any = operation
    made.__signature__ = Signature(parameters)
    made.__name__ = f"{action.name}_{noun.name}"
    made.__doc__ = action.explains
    return operation
