"""Arguments and results as bytes: JSON in kombu's dialect, or an error that names the field.

Preserved: JSON's types, ints of up to 4,300 digits, and kombu's: datetime (its zone becomes an
offset), date, time, Decimal, UUID, bytes. A tuple becomes a list, an enum's member its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, Final

from kombu.utils.json import JSONEncoder

from jobs.core.errors import ArgumentError, PayloadTooLarge, ResultError

NESTING_LIMIT: Final = 200
"""The deepest nesting of lists and dicts in one value."""

# UTF-8, not \u escapes: then encoding fails at a lone surrogate.
_JSON: Final = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_MARKER: Final = {"__type__", "__value__"}
_RESERVED: Final = "holds __type__ and __value__ alone, which kombu reserves"
_NO_EMBED: Final = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}

Path = tuple[Any, Any]
"""The path to a value: its key, and its container's path, None at the top."""


class _Fault(Exception):
    """A value that cannot be encoded, with the dotted path to it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem


def encode_body(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    embed: Mapping[str, Any] | None = None,
    *,
    max_bytes: int,
    positional: Sequence[str] = (),
) -> bytes:
    """Return the body of a Celery message (protocol 2) as UTF-8 JSON.

    `positional` has the names of `args`, for errors. Raises ArgumentError with the dotted path of a
    value that JSON cannot hold, and PayloadTooLarge over `max_bytes`.
    """
    embed = _NO_EMBED if embed is None else embed
    body = [list(args), dict(kwargs), dict(embed)]
    # Flat arguments need no check in advance: the encoder fails at a wrong value.
    if not _is_flat(args, kwargs, embed):
        _refuse_faults(body, positional, max_bytes)
    try:
        data = _JSON.encode(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        _refuse_faults(body, positional, max_bytes)
        raise ArgumentError("arguments", f"JSON cannot hold them ({error})") from error
    if len(data) > max_bytes:
        raise PayloadTooLarge(len(data), max_bytes)
    return data


def encode_result(value: Any, *, max_bytes: int) -> bytes:
    """Return a task's result as UTF-8 JSON; raise ResultError if it cannot be stored."""
    try:
        _refuse_fault(value, ("result", None), max_bytes)
        data = _JSON.encode(value).encode()
    except _Fault as fault:
        raise ResultError(f"{fault.path}: {fault.problem}") from None
    except PayloadTooLarge as error:
        raise ResultError(_too_large(error.size, max_bytes)) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultError(f"JSON cannot hold it ({error})") from error
    if len(data) > max_bytes:
        raise ResultError(_too_large(len(data), max_bytes))
    return data


def _too_large(size: int, limit: int) -> str:
    return f"it takes at least {size:,} bytes, the limit is {limit:,}; store it and return its id"


def _is_flat(args: Sequence[Any], kwargs: Mapping[str, Any], embed: Mapping[str, Any]) -> bool:
    return (
        _SCALARS.issuperset(map(type, chain(args, kwargs.values(), embed.values())))
        and all(type(name) is str for name in kwargs)
        and "__type__" not in kwargs
    )


def _refuse_faults(body: list[Any], positional: Sequence[str], max_bytes: int) -> None:
    args, kwargs, embed = body
    names = [*positional, *(f"args.{index}" for index in range(len(positional), len(args)))]
    left = max_bytes
    try:
        if kwargs.keys() == _MARKER:
            raise _Fault("__type__", _RESERVED)
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            _refuse_key(name, None)
            left = _refuse_fault(value, (name, None), max_bytes, left=left)
        for name, value in embed.items():
            left = _refuse_fault(value, (name, ("embed", None)), max_bytes, left=left)
    except _Fault as fault:
        raise ArgumentError(fault.path, fault.problem) from None


def _refuse_fault(value: Any, path: Path, limit: int, *, left: int | None = None) -> int:
    """Raise _Fault at the first value that JSON cannot hold; return the bytes left.

    Not recursive: no depth overflows the stack. Raises PayloadTooLarge early: an object that
    contains itself many times would take for ever.
    """
    left = limit if left is None else left
    waiting: list[tuple[Any, Path, int]] = [(value, path, 0)]
    while waiting:
        value, path, depth = waiting.pop()
        if depth > NESTING_LIMIT:
            raise _Fault(_top(path), f"is nested more than {NESTING_LIMIT} levels deep")
        if isinstance(value, dict):
            if value.keys() == _MARKER:
                raise _Fault(_dotted(path), _RESERVED)
            left -= sum(_refuse_key(key, path) for key in value)
            held = list(value.items())
        elif isinstance(value, (list, tuple)):
            held = list(enumerate(value)) if len(value) <= left else []
            left -= len(value) - len(held)
        elif isinstance(value, (str, int, float, type(None))):
            left -= _refuse_scalar(value, path)
            held = []
        else:
            waiting.append((_reduced(value, path), path, depth + 1))
            held = []
        # A stack: reversed, so that the first fault is reported.
        waiting.extend((inner, (key, path), depth + 1) for key, inner in reversed(held))
        left -= 1
        if left < 0:
            raise PayloadTooLarge(limit - left, limit)
    return left


def _refuse_scalar(value: Any, path: Path) -> int:
    """Raise _Fault for a scalar that JSON lacks; return the fewest bytes that it takes."""
    if isinstance(value, str):
        if _has_surrogate(value):
            raise _Fault(_dotted(path), "contains a lone surrogate, which is no Unicode text")
        return len(value)
    if isinstance(value, float) and not isfinite(value):
        raise _Fault(_dotted(path), f"is {value}, which JSON does not have")
    if isinstance(value, int):
        try:
            return len(int.__repr__(value)) - 1
        except ValueError:
            raise _Fault(_dotted(path), "is an integer of more than 4,300 digits") from None
    return 0


def _refuse_key(key: Any, path: Path | None) -> int:
    if not isinstance(key, str):
        problem = f"has a key of type {type(key).__name__}; JSON keys are strings"
        raise _Fault(_dotted(path) if path else "arguments", problem)
    if _has_surrogate(key):
        raise _Fault(_dotted((key, path)), "contains a lone surrogate, which is no Unicode text")
    return len(key)


def _reduced(value: Any, path: Path) -> Any:
    """Return what kombu writes for a value of a type that JSON lacks."""
    try:
        reduced = _JSON.default(value)
    # `__json__` and registered encoders are other people's code.
    except Exception:
        kind = type(value).__name__
        raise _Fault(_dotted(path), f"is of type {kind}, which JSON cannot hold") from None
    if isinstance(reduced, dict) and reduced.keys() == _MARKER and not hasattr(value, "__json__"):
        return reduced["__value__"]
    return reduced


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _dotted(path: Path) -> str:
    parts: list[str] = []
    link: Any = path
    while link is not None:
        key, link = link
        parts.append(str(key).encode(errors="backslashreplace").decode())
    return ".".join(reversed(parts))


def _top(path: Path) -> str:
    """Return the argument's name: the full path would be too long."""
    while path[1] is not None:
        path = path[1]
    return str(path[0])
