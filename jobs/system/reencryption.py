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
from typing import Any, Final
from uuid import UUID

from celery import current_app
from django.core.exceptions import ImproperlyConfigured
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


@dataclass(slots=True)
class Done:
    """What a re-encryption has rewritten so far."""

    runs: int = 0
    attempts: int = 0
    logs: int = 0
    jobs: int = 0
    webhooks: int = 0
    celery: int = 0
    left: int = 0
    """Rows that changed or were locked; the next pass takes them."""
    problems: Counter[str] = field(default_factory=Counter)
    """Why rows could not be read, with counts."""

    @property
    def total(self) -> int:
        return self.runs + self.attempts + self.logs + self.jobs + self.webhooks + self.celery


def keys_in_use() -> list[dict[str, Any]]:
    """Return how much is stored under each key: part, key (0: in clear), count."""
    return sql.run("system/keys_in_use", {})


def reencrypt(to: int, *, report: Callable[[Done], None] = lambda _done: None) -> Done:
    """Rewrite all rows that are not under a key; 0 decrypts them. Repeating it changes nothing.

    `report` is called after each batch. Raises ImproperlyConfigured if this process lacks the key.
    Rows that are refused as unencrypted stay so: encrypted, they would be accepted.
    """
    again = _Again(to, _ring_of(to))
    total = Done()
    for _pass in range(PASSES):
        before, total.left, total.problems = total.total, 0, Counter()
        for batches in (_runs, _attempts, _logs, _jobs, _webhooks, _celery):
            for _batch in batches(again, total):
                report(total)
        if not total.left:
            break
        if total.total == before:
            time.sleep(PAUSE_SECONDS)
    return total


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
    """Opens stored bytes, and encrypts them with one key."""

    key: int
    ring: KeyRing | None

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


def _readable(
    rows: Sequence[Mapping[str, Any]], rewrite: Callable[[Mapping[str, Any]], Any], total: Done
) -> Iterator[Any]:
    """Yield what `rewrite` returns for each row; count the rows that cannot be read."""
    for row in rows:
        try:
            yield rewrite(row)
        except (Damaged, UnknownKey) as error:
            total.problems[str(error)] += 1
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            # Raw SQL has changed the row.
            total.problems[f"cannot be read ({type(error).__name__})"] += 1


def _runs(again: _Again, total: Done) -> Iterator[None]:
    def rewrite(row: Mapping[str, Any]) -> tuple[Any, ...]:
        place = Place(slug_of(row["owner_id"]), row["id"], row["job_id"])
        [message], error = again.texts(
            [row["error_message"]], row["error_data"], row["error_key"], name=ERROR, place=place
        )
        payload = again.of_run(row["payload"], row["payload_key"], name=PAYLOAD, place=place)
        result = again.of_run(row["result"], row["result_key"], name=RESULT, place=place)
        checkpoint = again.of_run(
            row["checkpoint"], row["checkpoint_key"], name=CHECKPOINT, place=place
        )
        looks = again.of_run(row["looks"], row["looks_key"], name=LOOKS, place=place)
        return row["id"], row["version"], payload, result, error, checkpoint, looks, message

    after = UUID(int=0)
    names = ("ids", "versions", "payloads", "results", "errors", "checkpoints", "looks", "messages")
    given = {"key": again.key, "most": BATCH}
    while rows := sql.run("system/other_key_runs", {**given, "after": after}):
        after = rows[-1]["id"]
        found = list(_readable(rows, rewrite, total))
        written = sql.run("system/write_key_runs", {**given, **sql.columns(found, *names)})
        total.runs += len(written)
        total.left += len(found) - len(written)
        yield


def _attempts(again: _Again, total: Done) -> Iterator[None]:
    def rewrite(row: Mapping[str, Any]) -> tuple[Any, ...]:
        if row["owner_id"] is None:
            raise Damaged("its run is gone")
        place = Place(slug_of(row["owner_id"]), row["run_id"])
        texts, error = again.texts(
            [row["error_message"], row["traceback"]],
            row["error_data"],
            row["error_key"],
            name=crypto.attempt_field(row["token"]),
            place=place,
        )
        return row["run_id"], row["token"], row["version"], *texts, error

    run, token = UUID(int=0), -1
    names = ("runs", "tokens", "versions", "messages", "tracebacks", "errors")
    given = {"key": again.key, "most": BATCH}
    while rows := sql.run("system/other_key_attempts", {**given, "run": run, "token": token}):
        run, token = rows[-1]["run_id"], rows[-1]["token"]
        found = list(_readable(rows, rewrite, total))
        written = sql.run("system/write_key_attempts", {**given, **sql.columns(found, *names)})
        total.attempts += len(written)
        total.left += len(found) - len(written)
        yield


def _logs(again: _Again, total: Done) -> Iterator[None]:
    def rewrite(row: Mapping[str, Any]) -> tuple[Any, ...]:
        if row["owner_id"] is None:
            raise Damaged("its run is gone")
        place = Place(slug_of(row["owner_id"]), row["run_id"])
        name = crypto.log_field(row["token"], row["first_line"])
        data = again.of_run(row["data"], row["key"], name=name, place=place)
        return row["run_id"], row["token"], row["first_line"], data

    at: dict[str, Any] = {"run": UUID(int=0), "token": -1, "first_line": -1}
    given = {"key": again.key, "most": BATCH}
    while rows := sql.run("system/other_key_logs", {**given, **at}):
        last = rows[-1]
        at = {"run": last["run_id"], "token": last["token"], "first_line": last["first_line"]}
        found = list(_readable(rows, rewrite, total))
        columns = sql.columns(found, "runs", "tokens", "firsts", "datas")
        total.logs += len(sql.run("system/write_key_logs", {"key": again.key, **columns}))
        yield


def _jobs(again: _Again, total: Done) -> Iterator[None]:
    def rewrite(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], bytes]:
        place = Place(slug_of(row["owner_id"]), job=row["id"])
        return row, again.of_job(row["payload"], row["payload_key"], place=place)

    after = 0
    jobs = Job.objects.exclude(payload_key=again.key).order_by("id")
    while rows := list(
        jobs.filter(id__gt=after).values("id", "owner_id", "payload", "payload_key")[:BATCH]
    ):
        after = rows[-1]["id"]
        for row, payload in _readable(rows, rewrite, total):
            same = Job.objects.filter(id=row["id"], payload=bytes(row["payload"]))
            is_written = same.update(payload=payload, payload_key=again.key)
            total.jobs += is_written
            total.left += not is_written
        yield


def _webhooks(again: _Again, total: Done) -> Iterator[None]:
    rows = WebhookEndpoint.objects.select_related("owner")
    others = rows.exclude(secret_key=again.key) | rows.exclude(old_secret=None).exclude(
        old_secret_key=again.key
    )

    def rewrite(row: Mapping[str, Any]) -> tuple[WebhookEndpoint, bytes | None, bytes | None]:
        each: WebhookEndpoint = row["row"]
        new, old = (
            again.of_run(data, key, name=KEY_FIELD, place=each.place)
            for data, key in (
                (each.secret, each.secret_key),
                (each.old_secret, each.old_secret_key),
            )
        )
        return each, new, old

    found = [{"row": one} for one in others.order_by("id")]
    for each, new, old in _readable(found, rewrite, total):
        # One that was rotated meanwhile is taken by the next pass.
        same = WebhookEndpoint.objects.filter(pk=each.pk, secret=bytes(each.secret))
        is_written = same.update(
            secret=new, secret_key=again.key, old_secret=old, old_secret_key=again.key
        )
        total.webhooks += is_written
        total.left += not is_written
    yield


def _celery(again: _Again, total: Done) -> Iterator[None]:
    backend = current_app.backend
    mark = f'{{"{SEALED}": [{again.key}, '

    def rewrite(row: Mapping[str, Any]) -> tuple[TaskResult, str, str | None]:
        stored: TaskResult = row["row"]
        value, traceback = backend.read(stored)
        if again.ring is None:
            return stored, backend.encode_content(value)[2], traceback
        text = backend.encode_content([value, traceback])[2].encode()
        data = again.sealed(text, FIELD, Place("", stored.task_id))
        return (
            stored,
            backend.encode_content({SEALED: [again.key, b64encode(data).decode()]})[2],
            None,
        )

    after = 0
    rows = TaskResult.objects.exclude(result=None).exclude(result="null").order_by("id")
    if again.ring is None:
        rows = rows.filter(result__startswith=f'{{"{SEALED}": [')
    else:
        rows = rows.exclude(result__startswith=mark)
    while found := list(rows.filter(id__gt=after)[:BATCH]):
        after = found[-1].pk
        given = [{"row": one} for one in found]
        for stored, text, traceback in _readable(given, rewrite, total):
            same = TaskResult.objects.filter(pk=stored.pk, result=stored.result)
            is_written = same.update(result=text, traceback=traceback)
            total.celery += is_written
            total.left += not is_written
        yield
