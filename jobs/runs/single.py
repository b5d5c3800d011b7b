"""Submit one run in one statement, which outside a transaction is its own commit.

It is for the run that most callers submit: due at once, of an owner without calendars. For any
other run it stores nothing, and the steps of `jobs.runs.submission` store it, or raise.
"""

from __future__ import annotations

import json
from typing import Any, Final

from celery import Task
from django.db import connection

from fleet import Hint, crash_point
from jobs.core import crypto, prepared
from jobs.core.conf import setting
from jobs.core.crypto import PAYLOAD, Place, seal
from jobs.core.ids import new_tail
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.models.owner import slug_of
from jobs.runs import dispatch, idempotency, preparation
from jobs.runs.options import Options

_FIELDS: Final = tuple(field.attname for field in Run._meta.concrete_fields)
_NEW: Final[dict[str, Any]] = dict.fromkeys(_FIELDS) | {
    "state": State.QUEUED.value,
    **dict.fromkeys(("result_key", "error_key", "checkpoint_key", "looks_key"), 0),
    **dict.fromkeys(("token", "attempt_count", "earlier_attempts"), 0),
    **dict.fromkeys(("blocked_by", "window_policy", "error_type", "error_message"), ""),
}
"""The columns of a new run that no submit sets."""


def submit_one(task: Task, options: Options, payload: bytes, *, owner: Owner | str) -> Run | None:
    """Store one run and publish its hint; return it, or None if it needs more than a statement."""
    named = preparation.named_by(owner)
    if named is None or not _is_usual(options):
        return None
    slug = _slug(owner)
    given = {**named, "slug": slug, **_parameters(task, options, payload, slug=slug)}
    found = prepared.run_over_all("runs/insert_one", given)
    if not found:
        return None
    [row] = found
    if connection.in_atomic_block:
        crash_point("submit.after_insert")
    facts = (given["task"], given["queue"], row["slug"])
    hint = Hint(str(row["id"]), *facts, priority=given["priority"])
    dispatch.publish_hint_on_commit(hint, row["outbox_id"])
    return _run(row, given, owner=owner)


def _slug(owner: Owner | str) -> str | None:
    """Return the owner's slug, to which encrypted arguments are bound; None if it is not needed."""
    if isinstance(owner, str):
        return owner
    if crypto.ring() is None:
        return None
    return owner.slug or slug_of(owner.pk)


def _is_usual(options: Options) -> bool:
    """Say whether one statement may do; it has the last word."""
    is_due = not options.countdown and options.eta is None
    # Where the caller turned autocommit off, a transaction is open that Django does not see.
    is_django_s = connection.in_atomic_block or connection.get_autocommit()
    return is_due and is_django_s and not options.window


def _parameters(
    task: Task, options: Options, payload: bytes, *, slug: str | None
) -> dict[str, Any]:
    plan = preparation.run_plan(task, options)
    key = options.idempotency_key
    tail = new_tail()
    sealed = seal(payload, field=PAYLOAD, place=Place(slug or "", tail))
    return {
        "target": options.target,
        "tail": tail,
        "key": key,
        "fingerprint": key and idempotency.fingerprint(task.name, [payload]),
        "task": plan.task,
        "queue": plan.queue,
        "priority": plan.priority,
        "payload": sealed.data,
        "payload_key": sealed.key,
        "labels": json.dumps(dict(options.labels)),
        "max_attempts": plan.max_attempts,
        "policy": json.dumps(plan.policy),
        "options": json.dumps(preparation.message_options(options)),
        "lock": options.lock,
        "deadline": preparation.deadline_seconds_of(task, options),
        "lease": setting("LEASE_SECONDS"),
    }


def _run(row: dict[str, Any], given: dict[str, Any], *, owner: Owner | str) -> Run:
    """Return the run as it would be read. Of an owner that was named, id and slug are loaded."""
    values = _NEW | given | row
    values["queued_at"] = row["created_at"]
    for name in ("labels", "policy", "options", "history"):
        values[name] = json.loads(values[name])
    run = Run.from_db(connection.alias, _FIELDS, [values[name] for name in _FIELDS])
    is_loaded = isinstance(owner, Owner) and owner.slug == row["slug"]
    run.owner = (
        owner
        if is_loaded
        else Owner.from_db(connection.alias, ("id", "slug"), (row["owner_id"], row["slug"]))
    )
    return run
