"""The ring of encryption keys: how it is written, and where a process gets it. Once a process.

`1:<base64 of 32 bytes>,2:…`: ids from 1 to 32,767. The last one encrypts, and all of them decrypt.
No error repeats a key.
"""

from __future__ import annotations

import binascii
import shlex
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from os import urandom
from pathlib import Path
from types import MappingProxyType
from typing import Final

KEY_BYTES: Final = 32
MOST_ID: Final = 32_767
"""The largest id: the columns that hold it are a smallint."""
RING_LIMIT: Final = 64
"""Most keys of a ring."""
COMMAND_SECONDS: Final = 15.0
"""Most seconds that the command which prints the ring may take."""
SOURCES: Final = ("ENCRYPTION_KEYS", "ENCRYPTION_KEYS_FILE", "ENCRYPTION_KEYS_COMMAND")
"""The settings that a ring comes from; at most one of them is given."""


class BadRing(ValueError):
    """A ring cannot be used; the text says which part, and never holds a key."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the ring."""

    id: int
    material: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of a process, by id."""

    keys: Mapping[int, Key]
    newest: Key
    """The key that encrypts."""

    @property
    def ids(self) -> list[int]:
        """The ids of all keys, in order."""
        return sorted(self.keys)


def parsed(text: str) -> KeyRing:
    """Return the ring of a text; raise BadRing for a wrong form, length or id, or no key."""
    parts = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    if not 1 <= len(parts) <= RING_LIMIT:
        raise BadRing(f"has {len(parts)} keys; a ring has 1 to {RING_LIMIT}")
    keys: dict[int, Key] = {}
    for place, part in enumerate(parts, start=1):
        key = _key(part, place)
        if key.id in keys:
            raise BadRing(f"has key {key.id} twice")
        if any(key.material == other.material for other in keys.values()):
            raise BadRing(f"has the same bytes under key {key.id} and another one")
        keys[key.id] = key
    return KeyRing(MappingProxyType(keys), key)


def _key(part: str, place: int) -> Key:
    number, colon, text = part.partition(":")
    digits = number.strip()
    if not colon or not (digits.isascii() and digits.isdigit() and len(digits) <= 5):
        raise BadRing(f"is wrong at its part {place}, which must be ID:BASE64, such as 1:…")
    key_id = int(digits)
    if not 1 <= key_id <= MOST_ID:
        raise BadRing(f"has a key with the id {key_id}; an id is from 1 to {MOST_ID:,}")
    try:
        material = b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise BadRing(f"has a key {key_id} that is not base64") from None
    if len(material) != KEY_BYTES:
        raise BadRing(f"has a key {key_id} of {len(material)} bytes; a key has {KEY_BYTES}")
    return Key(key_id, material)


def new_key(key_id: int) -> str:
    """Return a new random key as a ring of one."""
    return f"{key_id}:{b64encode(urandom(KEY_BYTES)).decode()}"


@lru_cache(maxsize=32)
def loaded(keys: str, file: str, command: str) -> KeyRing | None:
    """Return the ring that these settings give; None if all are empty. Raises BadRing."""
    given = [name for name, value in zip(SOURCES, (keys, file, command), strict=True) if value]
    if not given:
        return None
    if len(given) > 1:
        raise BadRing(f"is given twice, by {' and '.join(given)}; keep one of them")
    return parsed(keys or (_read(file) if file else _printed(command)))


def _read(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no ASCII text"
        raise BadRing(f"cannot be read from the file {file}: {reason}") from None


def _printed(command: str) -> str:
    """Return what a command prints. Its own error output goes to this process's."""
    try:
        done = subprocess.run(
            shlex.split(command),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        text = done.stdout.decode("ascii")
    except subprocess.TimeoutExpired:
        raise BadRing(f"was not printed by its command within {COMMAND_SECONDS:g} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its output is no ASCII text"
        raise BadRing(f"cannot be had from its command: {reason}") from None
    if done.returncode != 0:
        raise BadRing(f"was not printed: its command ended with status {done.returncode}")
    return text
