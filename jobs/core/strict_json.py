"""Read JSON as callers should write it: what other readers would take differently is refused."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

INTEGER_LIMIT: Final = 2**63
# Only a text with one of these can hold NUL, half a character, or a number that is too large.
_SUSPECT: Final = re.compile(rb"\\u|[0-9]{19}|[eE]\+?[0-9]{3}")


class JsonError(ValueError):
    """Text that is not accepted as JSON; `field` is the path to what is wrong, if known."""

    def __init__(
        self, code: str, problem: str, *, field: str = "", limit: int | None = None
    ) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.field = field
        self.limit = limit


def parse(data: bytes, *, max_depth: int) -> Any:
    """Return the value of a JSON text; raise JsonError.

    Refused beside bad syntax: repeated names, NaN and Infinity, NUL, lone surrogates, whole numbers
    beyond 64 bits, numbers that are infinite as a float, and deeper nesting than `max_depth`.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise JsonError("invalid_utf8", f"byte {error.start} is not UTF-8") from None
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise _too_deep(max_depth) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise JsonError("malformed_json", f"{error.msg}: {where}") from None
    except JsonError:
        raise
    except ValueError:
        # Python refuses to convert thousands of digits.
        raise JsonError("number_too_large", "a number has too many digits") from None
    _refuse_depth(value, max_depth)
    if _SUSPECT.search(data):
        for path, scalar in _scalars(value, ()):
            _refuse_scalar(path, scalar)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        [(twice, _times)] = Counter(name for name, _value in pairs).most_common(1)
        raise JsonError("duplicate_key", "the name is given twice", field=_shown(twice))
    return made


def _constant(name: str) -> Any:
    raise JsonError("malformed_json", f"{name} is not JSON")


def _too_deep(limit: int) -> JsonError:
    return JsonError(
        "too_deep", f"lists and objects are nested more than {limit} deep", limit=limit
    )


def _refuse_depth(value: Any, limit: int) -> None:
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > limit:
            raise _too_deep(limit)
        level = [
            child
            for one in level
            for child in (one.values() if type(one) is dict else one)
            if type(child) is dict or type(child) is list
        ]


def _scalars(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every name, text and number with its path; the depth is checked before."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield (*path, name), name
            yield from _scalars(child, (*path, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _scalars(child, (*path, index))
    else:
        yield path, value


def _refuse_scalar(path: tuple[Any, ...], value: Any) -> None:
    field = _shown(".".join(map(str, path)))
    if isinstance(value, str):
        if "\x00" in value:
            raise JsonError(
                "unstorable_text", "holds NUL, which PostgreSQL cannot store", field=field
            )
        try:
            value.encode()
        except UnicodeEncodeError:
            raise JsonError(
                "unstorable_text", "holds a lone surrogate, which is no character", field=field
            ) from None
    elif isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        raise JsonError(
            "number_too_large", "is beyond 64 bits", field=field, limit=INTEGER_LIMIT - 1
        )
    elif isinstance(value, float) and not math.isfinite(value):
        raise JsonError("number_too_large", "is no finite number", field=field)


def _shown(field: str) -> str:
    """Return a path as text that can be sent: a name may hold half a character."""
    return field.encode(errors="backslashreplace").decode()[:200]
