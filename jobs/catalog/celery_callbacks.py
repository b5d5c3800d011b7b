"""Celery's links, errbacks and chords around durable runs: stored with them, not in the broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid4

from celery import current_app
from celery.canvas import Signature
from celery.result import AsyncResult
from kombu.utils import json

from jobs.catalog.registry import requires_row
from jobs.core.errors import OptionError


def embed_of(
    link: Signature | None, link_error: Signature | None, *, chord: Signature | None = None
) -> dict[str, Any]:
    """Return the part of a Celery message body that names its callbacks."""
    return {
        "callbacks": _listed("link", link),
        "errbacks": _listed("link_error", link_error),
        "chain": None,
        "chord": None if chord is None else _plain("chord", chord),
    }


def begin_chord(run_ids: Sequence[UUID], body: Signature | None) -> list[dict[str, Any]]:
    """Open a chord over runs that are about to be stored; return the headers of each run."""
    if body is None:
        return [{}] * len(run_ids)
    group_id = str(uuid4())
    results = [AsyncResult(str(run_id)) for run_id in run_ids]
    current_app.backend.apply_chord((group_id, results), body)
    return [
        {"group": group_id, "group_index": index, "ignore_result": False}
        for index in range(len(run_ids))
    ]


def _listed(option: str, signature: Signature | None) -> list[Any] | None:
    return None if signature is None else [_plain(option, signature)]


def _plain(option: str, signature: Signature) -> Any:
    if not isinstance(signature, Signature):
        raise OptionError(option, "is a Celery signature, such as task.s()")
    for name in _names(signature):
        if requires_row(name):
            # Celery sends callbacks as plain messages, and a worker would drop this one.
            raise OptionError(option, f"calls {name}, which runs only with a row; make it plain")
    return json.loads(json.dumps(signature))


def _names(signature: Signature) -> Iterator[str]:
    """Yield the names of all tasks in a signature, also inside groups and chains."""
    inner = [*(getattr(signature, "tasks", None) or ()), getattr(signature, "body", None)]
    parts = [part for part in inner if isinstance(part, dict)]
    if not parts:
        yield signature["task"]
    for part in parts:
        yield from _names(Signature.from_dict(part, app=current_app))
