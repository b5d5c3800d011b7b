"""Query parameters that an operation does not have are refused.

A misspelled filter would find all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest
from ninja.operation import Operation

from jobs.api.kit.problems import Problem
from jobs.core.inputs import near_hint

SHOWN: Final = 100
"""Most characters of an unknown name in an answer."""


def refuse_unknown(operations: Iterable[Operation]) -> None:
    """Make operations refuse query parameters that they do not have."""
    for operation in operations:
        _refuse_unknown(operation)


def _refuse_unknown(operation: Operation) -> None:
    known = frozenset(_names(operation))
    view = operation.view_func

    @wraps(view)
    def run(request: HttpRequest, **given: Any) -> Any:
        if request.META.get("QUERY_STRING"):
            for name in request.GET:
                if name not in known:
                    raise _unknown(name, known)
        return view(request, **given)

    operation.view_func = run


def _names(operation: Operation) -> Iterator[str]:
    for model in operation.models:
        if model.__ninja_param_source__ == "query":
            yield from getattr(model, "__ninja_flatten_map__", ())


def _unknown(name: str, known: Iterable[str]) -> Problem:
    shown = name[:SHOWN]
    detail = f"{shown}: is no parameter of this operation{near_hint(shown, known)}"
    return Problem(422, "invalid", detail, field=shown)
