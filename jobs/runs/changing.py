"""Change a waiting run: priority, queue, due time, deadline, labels, arguments.

Never one that a worker has: the row is locked, and written only in a state in which the run waits.
Its target, its lock and its idempotency key stay as they were submitted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import transaction
from kombu.utils import json

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.policies import CHECKS
from jobs.catalog.redaction import restored
from jobs.catalog.registry import resolve
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.crypto import PAYLOAD, read_message, seal
from jobs.core.errors import ArgumentError, OptionError, StateConflict
from jobs.core.inputs import REASON_LIMIT, refuse_labels, refuse_naive, refuse_text
from jobs.core.states import WAITING, State
from jobs.models import AuditEntry, Run
from jobs.models.verbs import Actor
from jobs.runs import preparation
from jobs.runs.dispatch import publish_on_commit, withdraw_on_commit
from jobs.runs.options import Options, refuse_far
from jobs.runs.recording import move
from jobs.runs.storage import IN_WAVE

FACTS: Final = ("priority", "queue", "due_at", "deadline_at", "labels")
"""What may be changed, beside the arguments: columns of a run."""
CAUSE: Final = "due time changed"
_LOST: Final = ("task", "key")
"""The `blocked_by` of a run that no worker could start: another queue or key may have one."""


def change_run(run: Run, *, actor: Actor = None, reason: str = "", **given: Any) -> None:
    """Change what is given of a waiting run; a queued one that moves on gets another hint.

    `arguments` are all of them, by name; `due_at` None: it is due now. Raises StateConflict if a
    worker has the run, or it has ended; OptionError, or what a submit raises for arguments. Nothing
    has changed then. An earlier hint is stale from the commit on.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        rows: Any = Run.objects.select_for_update(of=("self",)).select_related("owner", "target")
        found = rows.filter(id=run.id, state__in=WAITING).first()
        if found is None:
            run.refresh_from_db()
            raise StateConflict(str(run.id), run.state, "changed")
        facts = _checked(found, {name: given[name] for name in FACTS if name in given})
        columns = facts.copy()
        if "arguments" in given:
            columns |= _arguments(found, given["arguments"], actor=actor)
        if columns:
            details = {"before": _shown(found, facts), "after": _shown(facts, facts)}
            if columns.keys() - facts.keys():
                details["after"]["arguments"] = "changed"
            _write(found, columns, cause=reason or CAUSE)
            AuditEntry.write("change", on=found, actor=actor, reason=reason, **details)
    run.refresh_from_db()


class Edited(NamedTuple):
    """Other arguments of a run."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    columns: dict[str, Any]


def edited(run: Run, arguments: Mapping[str, Any], *, actor: Actor) -> Edited:
    """Return a run with other arguments, by name, all of them; checked as at a submit.

    Hidden values are kept as `redaction.restored` says.
    """
    args, kwargs, embed = read_message(run.payload, key=run.payload_key, place=run.place)
    stored = _by_name(run.task, args, kwargs)
    # A form sends a value back as it was shown.
    given = restored(dict(arguments), stored, task=run.task, may_keep=actor is None)
    payload = preparation.encode_payload(resolve(run.task), (), given, embed=embed)
    _args, after, _embed = json.loads(payload)
    sealed = seal(payload, field=PAYLOAD, place=run.place)
    # A checkpoint is of the earlier arguments.
    columns = {"payload": sealed.data, "payload_key": sealed.key, "checkpoint": None}
    return Edited(stored, after, columns)


def _by_name(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    positional = ArgumentSchema.of(resolve(task)).positional if args else ()
    return {**dict(zip(positional, args, strict=False)), **kwargs}


def _checked(run: Run, given: dict[str, Any]) -> dict[str, Any]:
    """Return the given facts that differ from the run's; raise OptionError for a wrong one."""
    now = sql.now()
    if "priority" in given:
        CHECKS["priority"]("priority", given["priority"])
    if "queue" in given:
        given["queue"] = preparation.queue_name(Options(queue=given["queue"]))
    if "labels" in given:
        refuse_labels(given["labels"])
    for name in {"due_at", "deadline_at"} & given.keys():
        if given[name] is not None:
            refuse_naive(name, given[name])
            refuse_far(given[name], now=now, option=name)
    facts = {name: value for name, value in given.items() if value != getattr(run, name)}
    if "due_at" in given and run.state == State.RETRYING:
        # Its next time is that of its retry.
        facts["due_at"] = given["due_at"]
    if facts.keys() & {"due_at", "deadline_at"}:
        _refuse_deadline(run, facts, now=now)
    return facts


def _refuse_deadline(run: Run, facts: Mapping[str, Any], *, now: datetime) -> None:
    """Raise OptionError for a deadline that has no effect, or that no start could meet."""
    deadline = facts.get("deadline_at", run.deadline_at)
    if run.blocked_by == IN_WAVE:
        if "deadline_at" in facts:
            raise OptionError("deadline_at", "counts from the release of the run's wave")
    elif run.attempt_count:
        if facts.get("deadline_at"):
            raise OptionError("deadline_at", "is for the first start, which the run has had")
    elif deadline is not None and deadline <= max(now, facts.get("due_at", run.due_at) or now):
        raise OptionError("deadline_at", "is in the future, and after the due time: change it, too")


def _arguments(run: Run, arguments: Mapping[str, Any], *, actor: Actor) -> dict[str, Any]:
    """Return the columns of other arguments; none if they are as before."""
    before, after, columns = edited(run, arguments, actor=actor)
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    _refuse_filled(run, {name: before[name] for name in names & before.keys()})
    return columns if names else {}


def _refuse_filled(run: Run, replaced: Mapping[str, Any]) -> None:
    """Raise ArgumentError for an argument that the run's target or lock may have been filled with.

    Only `submit_many` fills them, and stores no template.
    """
    if run.submission_id is None or run.job_id is not None:
        return
    filled = {
        "target": run.target.name if run.target else "",
        "lock": run.lock_key.partition(":")[2],
    }
    for name, value in replaced.items():
        for what, text in filled.items():
            if text and str(value) in text:
                raise ArgumentError(
                    name,
                    f"may be part of the run's {what}, {text!r}: cancel it, and submit another",
                )


def _write(run: Run, columns: dict[str, Any], *, cause: str) -> None:
    """Write the columns of a locked run, with its next time and its next hint."""
    now = sql.now()
    is_queued = run.state == State.QUEUED
    is_later = False
    if "due_at" in columns and run.blocked_by != IN_WAVE:
        due_at = columns["due_at"]
        is_later = due_at is not None and due_at > now
        if is_later or run.state in (State.SCHEDULED, State.RETRYING):
            # Promotion queues it, where its calendars allow it.
            columns["next_at"] = due_at if is_later else now
    moves_on = is_queued and (is_later or not {"priority", "queue"}.isdisjoint(columns))
    if not {"queue", "payload"}.isdisjoint(columns) and run.blocked_by in _LOST:
        columns["blocked_by"], moves_on = "", is_queued
    if moves_on:
        # The next hint is another message: the earlier one cannot be withdrawn from a worker.
        columns["token"] = run.token + 1
        columns["hint_check_at"] = now + timedelta(seconds=setting("LEASE_SECONDS"))
        withdraw_on_commit([{"id": run.id, "token": run.token, "queue": run.queue}])
    Run.objects.filter(id=run.id, state__in=WAITING).update(**columns)
    if is_later and run.state in (State.QUEUED, State.HELD):
        move([run.id], to=State.SCHEDULED, cause=cause)
    elif moves_on and not columns.get("blocked_by", run.blocked_by):
        publish_on_commit([run.id])


def _shown(facts: Any, names: Collection[str]) -> dict[str, Any]:
    """Return facts as the audit has them."""
    values = {n: facts[n] if isinstance(facts, Mapping) else getattr(facts, n) for n in names}
    return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in values.items()}
