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
from jobs.core import prepared, sql
from jobs.core.conf import setting
from jobs.core.ids import new_tail
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.runs import dispatch, idempotency, preparation
from jobs.runs.options import Options
from jobs.runs.storage import RunPlan

_FIELDS: Final = tuple(field.attname for field in Run._meta.concrete_fields)
_NEW: Final[dict[str, Any]] = dict.fromkeys(_FIELDS) | {
    "state": State.QUEUED.value,
    **dict.fromkeys(("payload_key", "result_key", "token", "attempt_count", "earlier_attempts"), 0),
    **dict.fromkeys(("blocked_by", "window_policy", "error_type", "error_message"), ""),
}
"""The columns of a new run that no submit sets."""


def submit_one(task: Task, options: Options, payload: bytes, *, owner: Owner | str) -> Run | None:
    """Store one run and publish its hint; return it, or None if it needs more than a statement."""
    if not _is_usual(options, owner):
        return None
    plan = preparation.run_plan(task, options)
    row = _insert(task, options, payload, plan, owner=owner)
    if row is None:
        return None
    if connection.in_atomic_block:
        crash_point("submit.after_insert")
    outbox_id, slug = row.pop("outbox_id"), row.pop("slug")
    if isinstance(owner, Owner):
        # A caller may know only the id of its owner.
        owner.slug = slug
    hint = Hint(str(row["id"]), plan.task, plan.queue, slug, priority=plan.priority)
    dispatch.publish_hint_on_commit(hint, outbox_id)
    return _run(row, options, payload, plan, owner=owner)


def _is_usual(options: Options, owner: Any) -> bool:
    """Say whether one statement may do; it has the last word."""
    is_due = not options.countdown and options.eta is None
    # PostgreSQL refuses NUL and lone surrogates; a slug is ASCII.
    is_owner = isinstance(owner, Owner) or (
        isinstance(owner, str) and owner.isascii() and "\x00" not in owner
    )
    # Where the caller turned autocommit off, a transaction is open that Django does not see.
    is_django_s = connection.in_atomic_block or connection.get_autocommit()
    return is_due and is_owner and is_django_s and not options.window


def _insert(
    task: Task, options: Options, payload: bytes, plan: RunPlan, *, owner: Owner | str
) -> dict[str, Any] | None:
    key = options.idempotency_key
    rows = prepared.run_over_all(
        "runs/insert_one",
        {
            "owner_id": owner.pk if isinstance(owner, Owner) else None,
            "slug": None if isinstance(owner, Owner) else owner,
            "target": options.target,
            "tail": new_tail(),
            "key": key,
            "fingerprint": key and idempotency.fingerprint(task.name, [payload]),
            "task": plan.task,
            "queue": plan.queue,
            "priority": plan.priority,
            "payload": payload,
            "labels": json.dumps(dict(options.labels)),
            "max_attempts": plan.max_attempts,
            "policy": json.dumps(plan.policy),
            "options": json.dumps(preparation.message_options(options)),
            "lock": options.lock,
            "deadline": preparation.deadline_seconds_of(task, options),
            "lease": setting("LEASE_SECONDS"),
            "published": sql.array(dispatch.take_published()),
        },
    )
    return rows[0] if rows else None


def _run(
    row: dict[str, Any], options: Options, payload: bytes, plan: RunPlan, *, owner: Owner | str
) -> Run:
    """Return the run as it would be read."""
    values = _NEW | row
    values.update(
        task=plan.task,
        queue=plan.queue,
        priority=plan.priority,
        payload=payload,
        labels=dict(options.labels),
        max_attempts=plan.max_attempts,
        # A tuple of names comes back as a list.
        policy=json.loads(json.dumps(plan.policy)),
        options=preparation.message_options(options),
        queued_at=row["created_at"],
        history=json.loads(row["history"]),
    )
    run = Run.from_db(connection.alias, _FIELDS, [values[name] for name in _FIELDS])
    if isinstance(owner, Owner):
        run.owner = owner
    return run
