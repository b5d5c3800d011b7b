"""Idempotency keys: asking twice with the same key makes one run or submission."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from jobs.core import sql
from jobs.core.errors import IdempotencyConflict
from jobs.models import IdempotencyKey, Owner


@dataclass(frozen=True, slots=True)
class Claim:
    """A key that this transaction has locked, if any, and what it has made before."""

    id: int | None = None
    run_id: UUID | None = None
    submission_id: int | None = None

    def store(self, **made: Any) -> None:
        """Store what the key has made: `run_id` or `submission_id`."""
        if self.id is not None:
            IdempotencyKey.objects.filter(id=self.id).update(**made)


def claim(
    owner: Owner, key: str | None, task: str, payloads: Iterable[bytes], *, is_bulk: bool = False
) -> Claim:
    """Lock an owner's key for this transaction, if there is one.

    Waits for a concurrent transaction with the same key. Raises IdempotencyConflict if the key was
    used for another task or other arguments, or for a single run instead of a bulk.
    """
    if key is None:
        return Claim()
    print_ = fingerprint(task, payloads, is_bulk=is_bulk)
    made = sql.query(
        "INSERT INTO jobs_idempotencykey (owner_id, key, fingerprint, created_at) "
        "VALUES (%s, %s, %s, clock_timestamp()) ON CONFLICT (owner_id, key) DO NOTHING "
        "RETURNING id",
        [owner.pk, key, print_],
    )
    if made:
        return Claim(made[0]["id"])
    kept = IdempotencyKey.objects.get(owner=owner, key=key)
    if bytes(kept.fingerprint) != print_:
        raise IdempotencyConflict(key)
    return Claim(kept.id, kept.run_id, kept.submission_id)


def fingerprint(task: str, payloads: Iterable[bytes], *, is_bulk: bool = False) -> bytes:
    """Return a digest of a submit; each part of it is preceded by its length."""
    digest = hashlib.sha256()
    for part in (b"bulk" if is_bulk else b"run", task.encode(), *payloads):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()
