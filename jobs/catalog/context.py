"""The run of the current task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from celery import current_task
from django.db import DatabaseError, InterfaceError
from kombu.utils import json

from fleet import HEADER, is_admitted
from jobs.catalog.attempt_store import AttemptStore
from jobs.catalog.encoding import encode_result
from jobs.core.conf import setting
from jobs.core.crypto import CHECKPOINT, Damaged, Place, UnknownKey, open_bytes, seal
from jobs.core.errors import CheckpointError, OptionError, ResultError
from jobs.core.inputs import refuse_text

NOTE_LIMIT: Final = 200
"""Characters."""
MOST: Final = 1e15
"""The largest number of steps."""
_STORE: Final = "_fairshift_store"


@dataclass(frozen=True, slots=True)
class RunContext:
    """The durable run that the current task is an attempt of. `attempt` counts from 1.

    After an operator's retry, `attempt` and Celery's `request.retries` start again; the numbers of
    stored attempts continue. `token` identifies an attempt in both.
    """

    run_id: UUID
    token: int
    attempt: int
    max_attempts: int
    owner: str
    job_id: int | None
    submission_id: int | None
    due_at: datetime | None
    labels: Mapping[str, str]
    _store: AttemptStore | None = field(default=None, repr=False, compare=False)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show how far the task is: on pages, in the API, by the command line.

        It is visible at once, whatever transaction the task has open. Call it as often as you like:
        at most one a second is written, and always the last one. `done` and `total` are steps,
        from 0 to 1e15; without `total`, no part is shown. `note` is text of at most 200 characters,
        stored in clear. If PostgreSQL does not answer, the task is not disturbed.

        Raises OptionError; StaleAttempt if another attempt has the run, or the run has ended. A run
        of a job without history has no row: nothing is written then.
        """
        _refuse_number("done", done)
        if total is not None:
            _refuse_number("total", total)
        refuse_text("note", note, most=NOTE_LIMIT)
        if self._store is not None:
            self._store.note({"done": done, "total": total, "note": note})

    @property
    def is_cancelled(self) -> bool:
        """Whether the task is to stop: cancelled, its window closed, or another attempt has it.

        Cheap: PostgreSQL is asked once a second at most. A task that then stops its work raises
        `Cancel`; one that returns has succeeded.
        """
        return self._store is not None and self._store.is_to_stop

    def checkpoint(self, value: Any) -> None:
        """Store a value of JSON that the next attempt finds as `last_checkpoint`.

        It is committed when this returns, whatever transaction the task has open, and encrypted as
        results are. It stays over retries, also those by an operator, until the run succeeds, or is
        retried with other arguments. None removes it.

        Raises CheckpointError if it takes more than CHECKPOINT_MAX_BYTES, is no JSON, or cannot be
        stored; StaleAttempt if another attempt has the run, or the run has ended.
        """
        try:
            data = encode_result(value, max_bytes=setting("CHECKPOINT_MAX_BYTES"))
        except ResultError as error:
            # Its path begins with the word that a task's result has.
            raise CheckpointError(f"value{error.problem.removeprefix('result')}") from None
        if self._store is None:
            raise CheckpointError("its run has no row, as its job has no history")
        sealed = seal(data, field=CHECKPOINT, place=self._place)
        try:
            self._store.write_checkpoint(sealed.data, key=sealed.key)
        except (DatabaseError, InterfaceError) as error:
            raise CheckpointError(f"PostgreSQL has not stored it ({error})") from error

    @property
    def last_checkpoint(self) -> Any:
        """The value of the run's last `checkpoint`, by this attempt or an earlier one; else None.

        Raises CheckpointError if it cannot be read.
        """
        try:
            found = None if self._store is None else self._store.read_checkpoint()
            if found is None:
                return None
            data, key = found
            return json.loads(open_bytes(data, key=key, field=CHECKPOINT, place=self._place))
        except (DatabaseError, InterfaceError) as error:
            raise CheckpointError(f"PostgreSQL has not returned it ({error})") from error
        except (UnknownKey, Damaged) as error:
            raise CheckpointError(f"it cannot be read ({error})") from error

    @property
    def _place(self) -> Place:
        return Place(self.owner, self.run_id, self.job_id)


def current_run() -> RunContext | None:
    """Return the run of the current task; None outside a task and in a plain one."""
    request = current_task.request if current_task else None
    facts = getattr(request, HEADER, None)
    if facts is None or not is_admitted(facts):
        return None
    run_id = UUID(facts["run"])
    return RunContext(
        run_id=run_id,
        token=facts["token"],
        attempt=facts["attempt"],
        max_attempts=facts["policy"]["max_attempts"],
        owner=facts["owner"],
        job_id=facts["job"],
        submission_id=facts["submission"],
        due_at=datetime.fromisoformat(facts["due_at"]) if facts["due_at"] else None,
        labels=facts["labels"],
        _store=_store_of(request, run_id, facts),
    )


def close_store() -> None:
    """Write the last progress of the current task, and close its connection, if it has one."""
    store = getattr(current_task.request, _STORE, None) if current_task else None
    if store is not None:
        store.close()


def _store_of(request: Any, run_id: UUID, facts: Mapping[str, Any]) -> AttemptStore | None:
    """Return the attempt's store, one for each request; None for a run without a row."""
    if facts.get("key") != facts["run"]:
        return None
    store: AttemptStore | None = getattr(request, _STORE, None)
    if store is None:
        store = AttemptStore(run_id, facts["token"])
        setattr(request, _STORE, store)
    return store


def _refuse_number(option: str, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= MOST:
        raise OptionError(option, f"is a number from 0 to {MOST:.0e}")
