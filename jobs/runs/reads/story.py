"""The story of one run: its states, its attempts, its arguments and its result, as plain data."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from jobs.catalog.redaction import hidden, hidden_arguments
from jobs.core import log_events
from jobs.core.crypto import UnknownKey
from jobs.core.states import State
from jobs.models import Attempt, Run, Worker

logger = logging.getLogger(__name__)

TEXT_LIMIT: Final = 20_000
ATTEMPT_LIMIT: Final = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One state of a run."""

    state: State
    at: datetime
    until: datetime | None
    """When the next state began; None: this is the newest one."""
    cause: str


class EndedAttempts(NamedTuple):
    """The ended attempts of a run, oldest first."""

    attempts: Sequence[Attempt]
    hidden: int
    """How many older attempts there are."""
    workers: dict[UUID, Worker]
    """The workers of these attempts, and that of the run."""


def steps_of(run: Run) -> list[Step]:
    """Return the states of a run, oldest first."""
    moves = run.moves
    ends: list[datetime | None] = [*(at for _state, at, _cause in moves[1:]), None]
    return [
        Step(state, at, until, cause or "")
        for (state, at, cause), until in zip(moves, ends, strict=True)
    ]


def ended_attempts(run: Run) -> EndedAttempts:
    """Return the newest ATTEMPT_LIMIT ended attempts of a run."""
    newest = list(run.attempts.order_by("-token")[: ATTEMPT_LIMIT + 1])
    shown = newest[:ATTEMPT_LIMIT][::-1]
    keys = {attempt.worker_id for attempt in shown} | {run.worker_id}
    workers = Worker.objects.in_bulk([key for key in keys if key])
    hidden = max(0, run.token - len(shown)) if len(newest) > ATTEMPT_LIMIT else 0
    return EndedAttempts(shown, hidden, workers)


def arguments_text(run: Run) -> str:
    """Return the arguments of a run as JSON: an object by name; `args` has those by position."""
    args, kwargs = hidden_arguments(run.task, *run.arguments)
    return as_json({"args": args, **kwargs} if args else kwargs)


def result_text(run: Run) -> str | None:
    """Return the result of a run as JSON; None before it succeeded."""
    return None if run.result is None else as_json(hidden(run.result_value))


def as_json(value: Any) -> str:
    """Return a value as indented JSON, cut at TEXT_LIMIT characters."""
    return cut(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def cut(text: str) -> str:
    """Return a text, cut at TEXT_LIMIT characters."""
    if len(text) <= TEXT_LIMIT:
        return text
    left = number_format(len(text) - TEXT_LIMIT, use_l10n=True, force_grouping=True)
    more = _("… %s more characters") % left
    return f"{text[:TEXT_LIMIT]}\n{more}"


def readable(value: Callable[[], Any], otherwise: Any = None) -> Any:
    """Return a part of a run; if it cannot be read, `otherwise` or a sentence that says why."""
    try:
        return value()
    # Rows may be written by raw SQL, or with a key that is not here.
    except Exception as error:
        log_events.ROW_UNREADABLE.log(logger, part="a part", row="a run", exc_info=True)
        return _("cannot be read (%s)") % _reason(error) if otherwise is None else otherwise


def _reason(error: Exception) -> str:
    """Return why a part cannot be read; that a key is missing is in the reader's language."""
    if isinstance(error, UnknownKey):
        return _("key %(key)s is missing") % {"key": error.key}
    return str(error)
