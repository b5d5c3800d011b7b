"""Stored payloads and results: opaque bytes and the id of a key; 0 means unencrypted JSON.

All reads of these columns are here: encryption will change this file and no column.
"""

from __future__ import annotations

from typing import Any, Final

from kombu.utils import json

CLEAR: Final = 0


class UnknownKey(LookupError):
    """The bytes were written with a key that this installation does not have."""


def read_body(data: bytes | memoryview, *, key: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments in a stored payload."""
    args, kwargs, _embed = read_message(data, key=key)
    return args, kwargs


def read_message(
    data: bytes | memoryview, *, key: int
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return the arguments in a stored payload, and Celery's callbacks and chord."""
    args, kwargs, embed = json.loads(open_bytes(data, key=key))
    return args, kwargs, embed


def read_result(data: bytes | memoryview, *, key: int) -> Any:
    """Return the value in a stored result."""
    return json.loads(open_bytes(data, key=key))


def open_bytes(data: bytes | memoryview, *, key: int) -> bytes:
    """Return the plain bytes of a stored payload or result."""
    if key != CLEAR:
        raise UnknownKey(f"no key {key} is known here")
    return bytes(data)
