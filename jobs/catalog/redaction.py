"""Values that no page, answer or export shows, also to those who may see arguments. Pure.

They are found by the annotation `Secret[...]` of a task's argument, and by the names that
`HIDDEN_NAMES` matches, at any depth of arguments and results. Logs are redacted by both before they
are stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, get_args

from pydantic import BaseModel

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import resolve
from jobs.catalog.secret import Hidden
from jobs.core.conf import setting
from jobs.core.errors import ArgumentError, FairshiftError

SHOWN: Final = "••••"
"""The text in place of a hidden value."""
LEAST_HIDDEN: Final = 4
"""The shortest value that is hidden in a log: a shorter one is part of many words."""


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


def log_redactor(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function that hides secrets in what a task logs, given its arguments.

    That is the values of its hidden arguments, wherever they stand, and what follows a secret name
    and `=` or `:`.
    """
    values: Sequence[str] = ()
    if args or kwargs:
        placed, named = hidden_arguments(task, args, kwargs)
        pairs = [*zip(args, placed, strict=True), *((kwargs[name], named[name]) for name in kwargs)]
        values = sorted({text for pair in pairs for text in _hidden_texts(*pair)}, key=len)[::-1]
    words, pattern = _assignments(tuple(setting("HIDDEN_NAMES")))

    def redacted(text: str) -> str:
        for value in values:
            if value in text:
                text = text.replace(value, SHOWN)
        if "=" in text or ":" in text:
            low = text.lower()
            if any(word in low for word in words):
                text = pattern.sub(_without_value, text)
        return text

    return redacted


def _hidden_texts(value: Any, shown: Any) -> Iterator[str]:
    """Yield the texts in a value that are hidden in what is shown of it."""
    if shown == SHOWN and value != SHOWN:
        yield from _texts_in(value)
    elif isinstance(value, dict) and isinstance(shown, dict):
        for key in value:
            yield from _hidden_texts(value[key], shown.get(key))
    elif isinstance(value, (list, tuple)) and isinstance(shown, list):
        for inner, hid in zip(value, shown, strict=False):
            yield from _hidden_texts(inner, hid)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts_in(inner)
    elif len(text := str(value)) >= LEAST_HIDDEN:
        yield text


@lru_cache(maxsize=4)
def _assignments(patterns: tuple[str, ...]) -> tuple[list[str], re.Pattern[str]]:
    """Return words of which a text with a secret name has one, and a pattern of name and value."""
    words, names = [], []
    wild = {"*": r"[\w.-]{0,64}", "?": r"[\w.-]"}
    for pattern in (each.lower() for each in patterns):
        inner = pattern.strip("*")
        words.append(max(re.split(r"[*?_]", inner), key=len))
        name = "".join(wild.get(each, re.escape(each)) for each in re.split(r"([*?])", inner))
        before = "" if pattern.startswith("*") else r"(?<![\w-])"
        after = wild["*"] if pattern.endswith("*") else ""
        names.append(before + name.replace("_", "[_-]") + after)
    return words, re.compile(
        rf"(?i)((?:{'|'.join(names)})[\"']?\s{{0,3}}[=:]\s{{0,3}})"
        r"((?:(?:bearer|basic|token)\s+)?(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&)}\]]+))"
    )


def _without_value(match: re.Match[str]) -> str:
    quote = match[2][0] if match[2][0] in "\"'" else ""
    return f"{match[1]}{quote}{SHOWN}{quote}"


def restored(
    given: Any, stored: dict[str, Any], *, task: str, may_keep: bool, is_same_task: bool = True
) -> Any:
    """Return arguments that a caller sends back, with the stored values where they were hidden.

    Both are by name; `task` is the task of the stored ones. Hidden values come back for a caller
    who changes nothing: with another argument or another task, a value that the caller may not see
    could go where the caller sees it. Code may change some arguments and keep others (`may_keep`).

    Raises ArgumentError with the path of a value that has to be given anew.
    """
    shown = hidden_arguments(task, (), stored)[1]
    if is_same_task and given == shown:
        return stored
    return _filled(given, shown, stored, path="", may_keep=may_keep)


def _filled(given: Any, shown: Any, stored: Any, *, path: str, may_keep: bool) -> Any:
    if given == SHOWN and stored != SHOWN:
        if shown != SHOWN:
            raise ArgumentError(path, f"is {SHOWN}, which stands for a hidden value: it has none")
        if not may_keep:
            raise ArgumentError(path, "is hidden, and other arguments change: give its value, too")
        return stored
    at = f"{path}." if path else ""
    if isinstance(given, dict):
        hid, had = (one if isinstance(one, dict) else {} for one in (shown, stored))
        return {
            key: _filled(inner, hid.get(key), had.get(key), path=f"{at}{key}", may_keep=may_keep)
            for key, inner in given.items()
        }
    if isinstance(given, list):
        # With another length, an element cannot be matched to a stored one.
        is_as_long = isinstance(shown, list) and len(stored) == len(given)
        before = zip(shown, stored, strict=True) if is_as_long else repeat((None, None))
        return [
            _filled(inner, *each, path=f"{at}{number}", may_keep=may_keep)
            for number, (inner, each) in enumerate(zip(given, before, strict=False))
        ]
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
    return _secret_fields(schema.model, tuple(schema.fields.items())), schema.positional


@lru_cache(maxsize=1_000)
def _secret_fields(model: type[BaseModel], names: tuple[tuple[str, str], ...]) -> frozenset[str]:
    fields = model.model_fields
    return frozenset(
        name
        for field, name in names
        if _has_mark(fields[field].metadata) or _has_mark(get_args(fields[field].annotation))
    )


def _has_mark(parts: Iterable[Any]) -> bool:
    """Say whether a part of an annotation is marked, as in `Secret[str] | None`."""
    return any(isinstance(part, Hidden) or _has_mark(get_args(part)) for part in parts)
