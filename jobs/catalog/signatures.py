"""Signatures whose annotations are types, also if they are written as text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_type_hints


def resolved_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature with annotations as types; a missing or unresolvable one becomes Any."""
    signature = inspect.signature(function)
    # A wrapped method needs both.
    function = inspect.unwrap(function)
    function = inspect.unwrap(getattr(function, "__func__", function))
    namespace = getattr(function, "__globals__", {})
    return signature.replace(
        parameters=[
            parameter.replace(annotation=_resolved(parameter.annotation, namespace))
            for parameter in signature.parameters.values()
        ]
    )


def _resolved(annotation: Any, namespace: dict[str, Any]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, namespace, include_extras=True)["it"]
    # Evaluating a text may raise anything.
    except Exception:
        return Any
