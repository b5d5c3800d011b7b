"""Where is it? A worker is asked for the stack of an attempt, and its answers stay with the run.

The question is in the row: the worker reads it with its next heartbeat, and the answer is fenced by
the attempt's token. Answers have no arguments, but names of files and functions: they are encrypted
as error texts are, and only callers that see arguments see them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction

from fleet import Look, Unseen
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.crypto import LOOKS, open_bytes, seal
from jobs.core.errors import StateConflict
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.phrases import Phrase, phrase
from jobs.core.states import ACTIVE
from jobs.models import AuditEntry, Run
from jobs.models.verbs import Actor

KEPT: Final = 5
"""Answers that stay with a run: the newest."""
STACK_LIMIT: Final = 20_000
"""Characters of an answer's stack."""
LEAST_SECONDS: Final = 1.0
"""Between two questions about a run."""
BEATS: Final = 2
"""Heartbeats after which a worker that has not answered is said to be silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Where an attempt was, as its worker has answered."""

    attempt: int
    worker: str
    pid: int | None
    asked_at: datetime
    asked_by: str
    answered_at: datetime
    stack: str
    problem: str
    """Why there is no stack; empty if there is one."""
    memory_bytes: int | None
    cpu_seconds: float | None


def ask_where(run: Run, *, actor: Actor = None, reason: str = "") -> None:
    """Ask the worker of an active run where it is; a question that waits is not repeated.

    Raises StateConflict if no worker has the run.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        rows: Any = Run.objects.select_for_update(of=("self",)).select_related("owner")
        found = rows.filter(id=run.id, state__in=ACTIVE).first()
        if found is None:
            run.refresh_from_db()
            raise StateConflict(str(run.id), run.state, "looked into")
        AuditEntry.write("look into", on=found, actor=actor, reason=reason)
        now, last = sql.now().timestamp(), found.look
        is_known = last is not None and last["token"] == found.token
        if not is_known or ("answered" in last and last["at"] < now - LEAST_SECONDS):
            name = actor.get_username() if actor else ""
            look = {"token": found.token, "at": now, "by": name}
            Run.objects.filter(id=run.id).update(look=look)
    run.refresh_from_db()


@transaction.atomic
def note_look(found: Look) -> None:
    """Store a worker's answer; drop it if the attempt has ended, or nothing is asked of it."""
    rows: Any = Run.objects.select_for_update(of=("self",)).select_related("owner", "worker")
    asked = {"id": found.run_id, "token": found.token, "look__token": found.token}
    run = rows.filter(**asked, state__in=ACTIVE).first()
    if run is None or "answered" in run.look:
        return
    answer = {
        **found._asdict(),
        "stack": found.stack.replace("\x00", "")[:STACK_LIMIT],
        "attempt": run.attempt_number,
        "worker": run.worker.hostname if run.worker else "",
        "asked": [run.look["at"], run.look["by"]],
        "at": sql.now().timestamp(),
    }
    try:
        kept = _read(run)
    # Whatever it is: earlier answers that cannot be read are dropped.
    except Exception:
        kept = []
    texts = json.dumps([*kept, answer][-KEPT:]).encode()
    sealed = seal(texts, field=LOOKS, place=run.place)
    look = {**run.look, "answered": True}
    Run.objects.filter(id=run.id).update(look=look, looks=sealed.data, looks_key=sealed.key)


def answers_of(run: Run) -> list[Answer]:
    """Return the answers of a run's workers, oldest first; raise UnknownKey or Damaged."""
    return [_answer(stored) for stored in _read(run)]


def unanswered(run: Run) -> str:
    """Return which worker has not answered the newest question; empty if it has."""
    look, worker = run.look, run.worker
    if look is None or worker is None or run.state not in ACTIVE:
        return ""
    if "answered" in look or look["token"] != run.token:
        return ""
    now, patience = sql.now(), setting("HEARTBEAT_SECONDS")
    waited = now.timestamp() - look["at"]
    if waited < BEATS * patience:
        return phrase(
            "%(worker)s is asked, and answers with its next heartbeat, within %(seconds)s s.",
            worker=worker.hostname,
            seconds=round(patience),
        )
    return phrase(
        "%(worker)s has not answered for %(seconds)s s: its last heartbeat was %(age)s s ago.",
        worker=worker.hostname,
        seconds=round(waited),
        age=round((now - worker.heartbeat_at).total_seconds()),
    )


def _read(run: Run) -> list[dict[str, Any]]:
    if run.looks is None:
        return []
    found: list[dict[str, Any]] = json.loads(
        open_bytes(run.looks, key=run.looks_key, field=LOOKS, place=run.place)
    )
    return found


def _answer(stored: Mapping[str, Any]) -> Answer:
    asked_at, asked_by = stored["asked"]
    return Answer(
        attempt=stored["attempt"],
        worker=stored["worker"],
        pid=stored["pid"],
        asked_at=_moment(asked_at),
        asked_by=asked_by,
        answered_at=_moment(stored["at"]),
        stack=stored["stack"],
        problem=_problem(stored),
        memory_bytes=stored["memory_bytes"],
        cpu_seconds=stored["cpu_seconds"],
    )


def _problem(stored: Mapping[str, Any]) -> str:
    facts = {"pid": str(stored["pid"]), "worker": stored["worker"]}
    match stored["unseen"]:
        case Unseen.NOT_BEGUN:
            return phrase("No process of %(worker)s has begun it yet.", **facts)
        case Unseen.OTHER_POOL:
            return phrase("Only processes of the prefork pool can say where they are.")
        case Unseen.SILENT:
            state = _STATES.get(stored["process_state"], phrase("it may wait for a processor"))
            return phrase(
                "Process %(pid)s of %(worker)s has written no stack within 2 s: %(state)s.",
                **facts,
                state=state,
            )
    return ""


_STATES: Final[Mapping[str, Phrase]] = {
    "stopped": phrase("it is stopped"),
    "traced": phrase("a debugger has stopped it"),
    "in an uninterruptible call": phrase("it is in an uninterruptible call of the kernel"),
    "ended": phrase("it has ended"),
}


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
