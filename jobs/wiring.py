"""The functions and settings of jobs that `fleet` uses; `config/celery.py` passes them once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Final, ParamSpec, TypeVar
from uuid import UUID

from celery.signals import worker_process_init
from django.db import connection, connections

from fleet import Admission, AdmissionRequest, Application, Refusal
from jobs.catalog.context import close_store
from jobs.catalog.encoding import encode_result
from jobs.catalog.registry import SYSTEM_TASKS, requires_row
from jobs.catalog.retry_policy import delay_after
from jobs.catalog.run_log import capture
from jobs.core import crypto
from jobs.core.conf import plain_queues, setting
from jobs.runs import admission, ephemeral, looks, recording
from jobs.system import heartbeat, sweep
from jobs.system.patience import limit_silence, limits_within

P = ParamSpec("P")
R = TypeVar("R")

SESSION: Final = {
    "lock_timeout": "5s",
    # PostgreSQL keeps the plan of a statement. One that was made just after midnight, for a small
    # partition, would read the whole partition when it has grown.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
}
"""PostgreSQL's settings for the connection of a worker's I/O thread, beside `statement_timeout`."""


def application() -> Application:
    """Return what a worker needs of Fairshift's rows."""
    worker_process_init.connect(capture.in_child, weak=False, dispatch_uid="fairshift run log")
    return Application(
        admit=_bounded(_admit),
        record=_bounded(recording.record),
        publish=ephemeral.publish,
        beat=_bounded(heartbeat.beat),
        leave=_bounded(heartbeat.leave),
        prime=_bounded(sweep.prime),
        close=close_connection,
        note_look=_bounded(looks.note_look),
        requires_row=requires_row,
        retry_delay=delay_after,
        encode_result=partial(encode_result, max_bytes=setting("RESULT_MAX_BYTES")),
        leave_clean=leave_clean,
        begin_log=capture.begin,
        end_log=capture.end,
        heartbeat_seconds=setting("HEARTBEAT_SECONDS"),
        lease_seconds=setting("LEASE_SECONDS"),
        cancel_grace_seconds=setting("CANCEL_GRACE_SECONDS"),
        plain_queues=plain_queues(),
        allows_other_pools=setting("ALLOW_OTHER_POOLS"),
        child_niceness=setting("CHILD_NICENESS"),
        system_queue=setting("SYSTEM_QUEUE"),
        remote_commands=setting("REMOTE_COMMANDS"),
        hides_values=crypto.ring() is not None,
        quiet_prefix=SYSTEM_TASKS,
    )


def _admit(
    worker_id: UUID, requests: Sequence[AdmissionRequest]
) -> Mapping[str, Admission | Refusal]:
    """Answer every request by its key."""
    unknown = [request for request in requests if not request.is_known and request.job is None]
    kept = [request for request in requests if request.is_known and request.job is None]
    of_jobs = [request for request in requests if request.is_known and request.job is not None]
    # A run without history has no row to wait in: its hint stays in the queue.
    answers: dict[str, Admission | Refusal] = {
        request.key: Refusal.BUSY
        for request in requests
        if not request.is_known and request.job is not None
    }
    # Admission last: it hands out tokens. The others may be repeated after an error.
    answers |= admission.refuse_unknown(unknown) if unknown else {}
    answers |= ephemeral.admit(worker_id, of_jobs) if of_jobs else {}
    return {**answers, **(admission.admit(worker_id, kept) if kept else {})}


def _bounded(verb: Callable[P, R]) -> Callable[P, R]:
    """Run a verb on a connection with limits; the I/O thread repeats failed calls."""

    @wraps(verb)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.connection is None:
            limits = limits_within(setting("LEASE_SECONDS"))
            timeout = {"statement_timeout": f"{1000 * limits.statement_seconds:.0f}ms"}
            with connection.cursor() as cursor:
                limit_silence(cursor.connection, seconds=limits.silent_seconds)
                for name, value in {**SESSION, **timeout}.items():
                    cursor.execute(f"SET {name} = '{value}'")
        return verb(*args, **kwargs)

    return bounded


def close_connection() -> None:
    """Drop this thread's connection after an error; the next statement opens a new one."""
    connection.close()


def leave_clean() -> None:
    """Write the task's last progress, and drop connections that it has left in disorder.

    Those are in a transaction, or were closed by hand.
    """
    close_store()
    for left in connections.all(initialized_only=True):
        raw = left.connection
        is_ruined = raw is not None and (getattr(raw, "closed", False) or not left.autocommit)
        if left.in_atomic_block or left.closed_in_transaction or is_ruined:
            if raw is not None:
                raw.close()
            # Django makes a new one at the next use.
            del connections[left.alias]
