"""Stored arguments, results and error texts: opaque bytes, and the id of their key beside them.

Key 0 means unencrypted JSON: so are all rows of an installation without a key ring, and old rows of
one that has got its ring since. All reads and writes of these columns are here. With the setting
ENCRYPTION_REQUIRED such rows are refused: someone who can write to the database could make them. So
a setting says it, and no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from kombu.utils import json

from jobs.core import cipher
from jobs.core.cipher import CHECKPOINT, ERROR, LOOKS, PAYLOAD, RESULT, Damaged, Place, UnknownKey
from jobs.core.conf import how_to_set, setting
from jobs.core.keyring import SOURCES, BadRing, KeyRing, loaded

__all__ = ["CHECKPOINT", "ERROR", "LOOKS", "PAYLOAD", "RESULT", "Damaged", "Place", "UnknownKey"]

CLEAR: Final = 0


class Sealed(NamedTuple):
    """Bytes as they are stored, and the id of their key."""

    key: int
    data: bytes


def ring() -> KeyRing | None:
    """Return this process's key ring; None if it has none. Raises ImproperlyConfigured."""
    keys, file, command = (setting(name) for name in SOURCES)
    try:
        found = loaded(keys, file, command)
    except BadRing as error:
        name = "ENCRYPTION_KEYS" if keys else SOURCES[1] if file else SOURCES[2]
        raise ImproperlyConfigured(f"FAIRSHIFT[{name!r}]: the key ring {error}.") from None
    if found is None and is_required():
        raise ImproperlyConfigured(
            "FAIRSHIFT['ENCRYPTION_REQUIRED'] is on, and there is no key ring: set"
            f" {how_to_set('ENCRYPTION_KEYS')}."
        )
    return found


def is_required() -> bool:
    """Say whether unencrypted rows are refused."""
    return bool(setting("ENCRYPTION_REQUIRED"))


def refuse_clear(field: str) -> None:
    """Raise Damaged for a field that is not encrypted, if it has to be."""
    if is_required():
        raise Damaged(f"the {field} is not encrypted, and ENCRYPTION_REQUIRED is on")


def key_ids() -> list[int]:
    """Return the ids of the keys that this process has."""
    found = ring()
    return [] if found is None else found.ids


def seal(data: bytes, *, field: str, place: Place) -> Sealed:
    """Return the bytes to store for a field of a run: encrypted if there is a key ring."""
    found = ring()
    if found is None:
        return Sealed(CLEAR, data)
    return Sealed(found.newest.id, cipher.for_run(found, data, field=field, place=place))


def seal_of_job(data: bytes, *, place: Place) -> Sealed:
    """Return the bytes to store for a job's arguments, which its runs can be read from, too."""
    found = ring()
    if found is None:
        return Sealed(CLEAR, data)
    return Sealed(found.newest.id, cipher.for_job(found, data, place=place))


def open_bytes(data: bytes | memoryview, *, key: int, field: str, place: Place) -> bytes:
    """Return the plain bytes of a stored field; raise UnknownKey or Damaged."""
    if key == CLEAR:
        refuse_clear(field)
        return bytes(data)
    return cipher.opened(ring(), data, key=key, field=field, place=place)


def open_payload(data: bytes | memoryview, *, key: int, place: Place) -> bytes:
    """Return a stored payload, of a run or of its job, as the body of a message."""
    return open_bytes(data, key=key, field=PAYLOAD, place=place)


def read_body(
    data: bytes | memoryview, *, key: int, place: Place
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments in a stored payload."""
    args, kwargs, _embed = read_message(data, key=key, place=place)
    return args, kwargs


def read_message(
    data: bytes | memoryview, *, key: int, place: Place
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return the arguments in a stored payload, and Celery's callbacks and chord."""
    args, kwargs, embed = json.loads(open_payload(data, key=key, place=place))
    return args, kwargs, embed


def read_result(data: bytes | memoryview, *, key: int, place: Place) -> Any:
    """Return the value in a stored result."""
    return json.loads(open_bytes(data, key=key, field=RESULT, place=place))


def seal_texts(texts: Sequence[str], *, field: str, place: Place) -> Sealed:
    """Return texts, such as those of an error, as bytes to store."""
    return seal(json.dumps(list(texts)).encode(), field=field, place=place)


def read_texts(data: bytes | memoryview, *, key: int, field: str, place: Place) -> list[str]:
    """Return the texts that `seal_texts` has stored."""
    found: list[str] = json.loads(open_bytes(data, key=key, field=field, place=place))
    return found


def log_field(token: int, first_line: int) -> str:
    """Return the field of a chunk of a log: a chunk cannot be moved in it, nor to another one."""
    return f"log of attempt {token} from line {first_line}"


def attempt_field(token: int) -> str:
    """Return the field of an attempt's error: each attempt of a run has its own."""
    return f"{ERROR} of attempt {token}"
