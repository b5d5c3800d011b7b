"""Bytes at rest under a key: AES-256-GCM, bound to the row and the field that they stand in. Pure.

A cipher text begins with a header, which is authenticated: what it is bound to (1 byte: 1 a run, 2
a job), the id of its key (2, big-endian), a day (2, days since 1970; 0 for a job). Then come a
nonce (12), the encrypted bytes and a tag (16).

The key of a text is derived from that of the ring by HKDF-SHA256 (RFC 5869) for an owner and a day,
as random nonces of 96 bits are safe for 2**32 texts under one key (NIST SP 800-38D, 8.3). Its info
is `fairshift NUL header NUL owner`; the associated data are `header NUL field NUL owner NUL row`,
where the row is the 20 hex digits of the run's id after its time, or the job's id.

What belongs to a run is bound to its owner, its field and the random part of its id. PostgreSQL
writes the other part, the time, in the statement that stores the run. A job's arguments are copied
to its runs inside the database, so they are bound to the owner and the job. Equal ones have equal
cipher texts, because an upsert finds out by comparison what has changed: the nonce is a MAC of the
text and of what it is bound to.
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from os import urandom
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from jobs.core.keyring import KEY_BYTES, Key, KeyRing
from jobs.core.phrases import Phrase, phrase

_HEADER: Final = struct.Struct(">BHH")
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
OVERHEAD: Final = _HEADER.size + _NONCE_BYTES + _TAG_BYTES
"""Bytes by which a cipher text is longer than its text."""
_TO_RUN: Final = 1
_TO_JOB: Final = 2
_DAY_SECONDS: Final = 86_400
_NO_DAY: Final = 0

PAYLOAD: Final = "payload"
RESULT: Final = "result"
ERROR: Final = "error"
CHECKPOINT: Final = "checkpoint"
LOOKS: Final = "looks"


class UnknownKey(LookupError):
    """The bytes were written with a key that this installation does not have."""

    def __init__(self, key: int) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> Phrase:
        # A digit group in an id would make it another one.
        return phrase("key %(key)s is missing", key=str(self.key))


class Damaged(ValueError):
    """The bytes are not those that were written for this row and field."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where bytes stand: the owner's slug, the run, and the job that the run is of, if any."""

    owner: str
    run: UUID | str | None = None
    """The run's id, or the 20 hex digits of it after its time."""
    job: int | None = None


def for_run(ring: KeyRing, data: bytes, *, field: str, place: Place) -> bytes:
    """Return bytes that only this field of this run can be read from."""
    header = _HEADER.pack(_TO_RUN, ring.newest.id, _today())
    bound, nonce = _bound_to(header, field, place), urandom(_NONCE_BYTES)
    return _encrypted(ring.newest, header, nonce, data, bound=bound, owner=place.owner)


def for_job(ring: KeyRing, data: bytes, *, place: Place) -> bytes:
    """Return arguments that only this job and its runs can be read from; equal ones are equal."""
    header = _HEADER.pack(_TO_JOB, ring.newest.id, _NO_DAY)
    bound = _bound_to(header, PAYLOAD, place)
    mac = hmac.digest(
        _derived(ring.newest, b"nonce", place.owner), bound + b"\x00" + data, "sha256"
    )
    nonce = mac[:_NONCE_BYTES]
    return _encrypted(ring.newest, header, nonce, data, bound=bound, owner=place.owner)


def opened(
    ring: KeyRing | None, data: bytes | memoryview, *, key: int, field: str, place: Place
) -> bytes:
    """Return the text; raise UnknownKey, or Damaged for other bytes than were written here."""
    data = bytes(data)
    if len(data) < OVERHEAD:
        raise Damaged(f"the {field} is cut off: {len(data)} bytes are no cipher text")
    header = data[: _HEADER.size]
    _bound, key_id, _day = _HEADER.unpack(header)
    if key_id != key:
        raise Damaged(f"the {field} is damaged: it names key {key_id}, and its row key {key}")
    if ring is None or key not in ring.keys:
        raise UnknownKey(key)
    start = _HEADER.size + _NONCE_BYTES
    cipher = _cipher(ring.keys[key], header, place.owner)
    try:
        return cipher.decrypt(
            data[_HEADER.size : start], data[start:], _bound_to(header, field, place)
        )
    except InvalidTag:
        raise Damaged(
            f"the {field} is damaged, or is not of this row: key {key} does not open it"
        ) from None


def _encrypted(
    key: Key, header: bytes, nonce: bytes, data: bytes, *, bound: bytes, owner: str
) -> bytes:
    return header + nonce + _cipher(key, header, owner).encrypt(nonce, data, bound)


def _bound_to(header: bytes, field: str, place: Place) -> bytes:
    """Return the associated data: no part of it can hold the NUL that separates them."""
    whose = _tail(place.run) if header[0] == _TO_RUN else str(place.job or "")
    if not whose:
        raise Damaged(f"the {field} is of another row: it is bound to a run or job")
    return b"\x00".join((header, field.encode(), place.owner.encode(), whose.encode()))


def _tail(run: UUID | str | None) -> str:
    return run.hex[12:] if isinstance(run, UUID) else run or ""


def _today() -> int:
    """Return this process's day: it only varies the key, so a wrong clock does no harm."""
    return int(datetime.now(UTC).timestamp()) // _DAY_SECONDS & 0xFFFF


@lru_cache(maxsize=4_096)
def _cipher(key: Key, header: bytes, owner: str) -> AESGCM:
    return AESGCM(_derived(key, header, owner))


@lru_cache(maxsize=4_096)
def _derived(key: Key, purpose: bytes, owner: str) -> bytes:
    info = b"\x00".join((b"fairshift", purpose, owner.encode()))
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(key.material)
