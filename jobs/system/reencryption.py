"""Re-encryption: rewrites rows under one key, so that the others may go.

Short batches, each one statement that commits by itself: it may be stopped at any point, and runs
beside everything else. A row that changes meanwhile, or is locked, is left for the next pass.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from celery import current_app
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django_celery_results.models import TaskResult
from kombu.utils import json

from jobs.core import cipher, crypto, sql
from jobs.core.crypto import (
    CHECKPOINT,
    CLEAR,
    ERROR,
    LOOKS,
    PAYLOAD,
    RESULT,
    Damaged,
    Place,
    UnknownKey,
)
from jobs.core.keyring import KeyRing
from jobs.models import Job, WebhookEndpoint
from jobs.models.owner import slug_of
from jobs.models.webhook import KEY_FIELD
from jobs.runs.result_backend import FIELD, SEALED

BATCH: Final = 200
"""Rows of a batch."""
PASSES: Final = 20
"""Most passes over all tables: while workers with another ring write, one may never be the last."""
PAUSE_SECONDS: Final = 0.2
"""The wait after a pass that found all its rows locked or changed."""

Row = TypeVar("Row")
Rewritten = TypeVar("Rewritten")
Batches = Iterator[tuple[int, int]]
"""For each batch, the number of rows that could be read, and of those that were written."""


@dataclass(slots=True)
class Done:
    """What a re-encryption has rewritten so far."""

    rewritten: Counter[str] = field(default_factory=Counter)
    """How many rows, by their names in PARTS."""
    left: int = 0
    """Rows that changed or were locked; the next pass takes them."""
    problems: Counter[str] = field(default_factory=Counter)
    """Why rows could not be read, with counts."""


def keys_in_use() -> list[dict[str, Any]]:
    """Return how much is stored under each key: part, key (0: in clear), count."""
    return sql.run("system/keys_in_use", {})


def reencrypt(to: int, *, report: Callable[[Done], None] = lambda _done: None) -> Done:
    """Rewrite all rows that are not under a key; 0 decrypts them. Repeating it changes nothing.

    `report` is called after each batch. Raises ImproperlyConfigured if this process lacks the key.
    Rows that are refused as unencrypted stay so: encrypted, they would be accepted.
    """
    ring, done = _ring_of(to), Done()
    for _pass in range(PASSES):
        before, done.left, done.problems = done.rewritten.total(), 0, Counter()
        for name, batches in PARTS.items():
            for readable, written in batches(_Again(to, ring, done.problems)):
                done.rewritten[name] += written
                done.left += readable - written
                report(done)
        if not done.left:
            break
        if done.rewritten.total() == before:
            time.sleep(PAUSE_SECONDS)
    return done


def _ring_of(to: int) -> KeyRing | None:
    """Return a ring that encrypts with this key; None for 0."""
    if to == CLEAR:
        if crypto.is_required():
            raise ImproperlyConfigured(
                "ENCRYPTION_REQUIRED is on: decrypted rows would be refused."
            )
        return None
    ring = crypto.ring()
    if ring is None or to not in ring.keys:
        raise ImproperlyConfigured(f"The key ring of this process has no key {to}.")
    return KeyRing(ring.keys, ring.keys[to])


@dataclass(frozen=True, slots=True)
class _Again:
    """Opens stored bytes, and encrypts them with one key; counts what cannot be read."""

    key: int
    ring: KeyRing | None
    problems: Counter[str]

    def readable(self, rows: Sequence[Row], rewrite: Callable[[Row], Rewritten]) -> list[Rewritten]:
        """Return what `rewrite` returns of each row that can be read."""
        found = []
        for row in rows:
            try:
                found.append(rewrite(row))
            except (Damaged, UnknownKey) as error:
                self.problems[str(error)] += 1
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                # Raw SQL has changed the row.
                self.problems[f"cannot be read ({type(error).__name__})"] += 1
        return found

    def of_run(self, data: Any, key: int, *, name: str, place: Place) -> bytes | None:
        """Return a field of a run under the key; unchanged if it is so already."""
        if data is None or key == self.key:
            return None if data is None else bytes(data)
        return self.sealed(crypto.open_bytes(data, key=key, field=name, place=place), name, place)

    def of_job(self, data: Any, key: int, *, place: Place) -> bytes:
        """Return a job's arguments under the key."""
        text = crypto.open_payload(data, key=key, place=place)
        return text if self.ring is None else cipher.for_job(self.ring, text, place=place)

    def texts(
        self, plain: Sequence[str], data: Any, key: int, *, name: str, place: Place
    ) -> tuple[list[str], bytes | None]:
        """Return error texts as plain ones, which are empty if they are encrypted, and these."""
        if data is not None:
            plain = crypto.read_texts(data, key=key, field=name, place=place)
        if self.ring is None or not any(plain):
            return list(plain), None
        return [""] * len(plain), self.sealed(json.dumps(list(plain)).encode(), name, place)

    def sealed(self, text: bytes, name: str, place: Place) -> bytes:
        return (
            text if self.ring is None else cipher.for_run(self.ring, text, field=name, place=place)
        )


def _by_statements(
    part: str,
    again: _Again,
    rewrite: Callable[[Mapping[str, Any]], tuple[Any, ...]],
    *,
    after: Mapping[str, Any],
    names: Sequence[str],
) -> Batches:
    """Rewrite rows by two statements: one reads the rows `after` a place, one writes columns."""
    given = {"key": again.key, "most": BATCH}
    while rows := sql.run(f"system/other_key_{part}", {**given, **after}):
        after = {name: rows[-1][name] for name in after}
        found = again.readable(rows, rewrite)
        columns = sql.columns(found, *names)
        yield len(found), len(sql.run(f"system/write_key_{part}", {**given, **columns}))


def _by_rows(
    rows: QuerySet[Any],
    again: _Again,
    rewrite: Callable[[Any], tuple[QuerySet[Any], dict[str, Any]]],
) -> Batches:
    """Rewrite each row that is still the one that was read; `rewrite` finds it, with its fields."""
    after, rows = 0, rows.order_by("pk")
    while batch := list(rows.filter(pk__gt=after)[:BATCH]):
        after = batch[-1].pk
        found = again.readable(batch, rewrite)
        yield len(found), sum(same.update(**fields) for same, fields in found)


def _runs(again: _Again) -> Batches:
    def rewrite(row: Mapping[str, Any]) -> tuple[Any, ...]:
        place = Place(slug_of(row["owner_id"]), row["id"], row["job_id"])
        [message], error = again.texts(
            [row["error_message"]], row["error_data"], row["error_key"], name=ERROR, place=place
        )
        fields = (
            again.of_run(row[name], row[f"{name}_key"], name=name, place=place)
            for name in (PAYLOAD, RESULT, CHECKPOINT, LOOKS)
        )
        return row["id"], row["version"], *fields, error, message

    names = ("ids", "versions", "payloads", "results", "checkpoints", "looks", "errors", "messages")
    after = {"id": UUID(int=0)}
    return _by_statements("runs", again, rewrite, after=after, names=names)


def _attempts(again: _Again) -> Batches:
    def rewrite(row: Mapping[str, Any]) -> tuple[Any, ...]:
        texts, error = again.texts(
            [row["error_message"], row["traceback"]],
            row["error_data"],
            row["error_key"],
            name=crypto.attempt_field(row["token"]),
            place=_place_of_run(row),
        )
        return row["run_id"], row["token"], row["version"], *texts, error

    names = ("runs", "tokens", "versions", "messages", "tracebacks", "errors")
    after = {"run_id": UUID(int=0), "token": -1}
    return _by_statements("attempts", again, rewrite, after=after, names=names)


def _logs(again: _Again) -> Batches:
    def rewrite(row: Mapping[str, Any]) -> tuple[Any, ...]:
        name = crypto.log_field(row["token"], row["first_line"])
        data = again.of_run(row["data"], row["key"], name=name, place=_place_of_run(row))
        return row["run_id"], row["token"], row["first_line"], data

    names = ("runs", "tokens", "firsts", "datas")
    after = {"run_id": UUID(int=0), "token": -1, "first_line": -1}
    return _by_statements("logs", again, rewrite, after=after, names=names)


def _place_of_run(row: Mapping[str, Any]) -> Place:
    if row["owner_id"] is None:
        raise Damaged("its run is gone")
    return Place(slug_of(row["owner_id"]), row["run_id"])


def _jobs(again: _Again) -> Batches:
    def rewrite(job: Job) -> tuple[QuerySet[Job], dict[str, Any]]:
        place = Place(slug_of(job.owner_id), job=job.pk)
        payload = again.of_job(job.payload, job.payload_key, place=place)
        same = Job.objects.filter(pk=job.pk, payload=bytes(job.payload))
        return same, {"payload": payload, "payload_key": again.key}

    jobs = Job.objects.only("owner_id", "payload", "payload_key")
    return _by_rows(jobs.exclude(payload_key=again.key), again, rewrite)


def _webhooks(again: _Again) -> Batches:
    def rewrite(row: WebhookEndpoint) -> tuple[QuerySet[WebhookEndpoint], dict[str, Any]]:
        new, old = (
            again.of_run(data, key, name=KEY_FIELD, place=row.place)
            for data, key in ((row.secret, row.secret_key), (row.old_secret, row.old_secret_key))
        )
        # One that was rotated meanwhile is taken by the next pass.
        same = WebhookEndpoint.objects.filter(pk=row.pk, secret=bytes(row.secret))
        keys = {"secret_key": again.key, "old_secret_key": again.key}
        return same, {"secret": new, "old_secret": old, **keys}

    rows = WebhookEndpoint.objects.select_related("owner")
    others = rows.exclude(secret_key=again.key) | rows.exclude(old_secret=None).exclude(
        old_secret_key=again.key
    )
    return _by_rows(others, again, rewrite)


def _celery(again: _Again) -> Batches:
    backend = current_app.backend

    def rewrite(row: TaskResult) -> tuple[QuerySet[TaskResult], dict[str, Any]]:
        value, traceback = backend.read(row)
        if again.ring is not None:
            text = backend.encode_content([value, traceback])[2].encode()
            data = again.sealed(text, FIELD, Place("", row.task_id))
            value, traceback = {SEALED: [again.key, b64encode(data).decode()]}, None
        same = TaskResult.objects.filter(pk=row.pk, result=row.result)
        return same, {"result": backend.encode_content(value)[2], "traceback": traceback}

    rows = TaskResult.objects.exclude(result=None).exclude(result="null")
    mark = f'{{"{SEALED}": ['
    if again.ring is None:
        rows = rows.filter(result__startswith=mark)
    else:
        rows = rows.exclude(result__startswith=f"{mark}{again.key}, ")
    return _by_rows(rows, again, rewrite)


PARTS: Final[Mapping[str, Callable[[_Again], Batches]]] = {
    "runs": _runs,
    "attempts": _attempts,
    "chunks of logs": _logs,
    "jobs": _jobs,
    "webhooks": _webhooks,
    "results of Celery": _celery,
}
"""The parts of the database that are rewritten, in this order, by the names that operators see."""
