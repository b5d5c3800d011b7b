"""Values that no page, answer or export shows, also to those who may see arguments. Pure.

They are found by the annotation `Secret[...]` of a task's argument, and by the names that
`HIDDEN_NAMES` matches, at any depth of arguments and results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, get_args

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import resolve
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError
from jobs.core.secret import Hidden

SHOWN: Final = "••••"
"""The text in place of a hidden value."""


def hidden_arguments(
    task: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a task as they may be shown."""
    by_type, positional = _secrets_of(task)
    named = {
        name: SHOWN if name in by_type else hidden(value, name) for name, value in kwargs.items()
    }
    names = [*positional[: len(args)], *[""] * (len(args) - len(positional))]
    placed = [
        SHOWN if name in by_type else hidden(value, name)
        for name, value in zip(names, args, strict=True)
    ]
    return placed, named


def hidden(value: Any, name: str = "") -> Any:
    """Return a value as it may be shown: the values of secret names in it are hidden."""
    if value is not None and name and _is_secret(name, tuple(setting("HIDDEN_NAMES"))):
        return SHOWN
    if isinstance(value, dict):
        return {key: hidden(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [hidden(inner) for inner in value]
    return value


def restored(given: Any, stored: Any) -> Any:
    """Return what a form or a client sends back, with the stored values where it has `SHOWN`."""
    if given == SHOWN:
        return given if stored is None else stored
    if isinstance(given, dict) and isinstance(stored, dict):
        return {key: restored(inner, stored.get(key)) for key, inner in given.items()}
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        return [restored(*pair) for pair in zip(given, stored, strict=True)]
    return given


@lru_cache(maxsize=10_000)
def _is_secret(name: str, patterns: tuple[str, ...]) -> bool:
    plain = name.lower().replace("-", "_")
    return any(fnmatchcase(plain, pattern.lower()) for pattern in patterns)


def _secrets_of(task: str) -> tuple[frozenset[str], Sequence[str]]:
    """Return the arguments of a task that are secret by their type, and its positional ones."""
    try:
        schema = ArgumentSchema.of(resolve(task))
    # A task that is not here any more, or whose signature cannot be read: names are left.
    except (FairshiftError, TypeError, ValueError):
        return frozenset(), ()
    fields = schema.model.model_fields
    return (
        frozenset(
            name
            for field, name in schema.fields.items()
            if _has_mark(fields[field].metadata) or _has_mark(get_args(fields[field].annotation))
        ),
        schema.positional,
    )


def _has_mark(parts: Iterable[Any]) -> bool:
    """Say whether a part of an annotation is marked, as in `Secret[str] | None`."""
    return any(isinstance(part, Hidden) or _has_mark(get_args(part)) for part in parts)
