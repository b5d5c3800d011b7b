"""What `fleet` is handed of jobs. `config/celery.py` calls this once."""

from __future__ import annotations

from functools import partial

from celery import current_app
from django.db import connection, connections

from fleet import Edges
from jobs import admission, liveness, recording
from jobs.catalog import offer_of
from jobs.conf import setting
from jobs.encoding import encode_result
from jobs.run_policies import delay_after


def edges() -> Edges:
    """Return the application's half of the journey."""
    return Edges(
        admit=admission.admit,
        record=recording.record,
        beat=liveness.beat,
        leave=liveness.leave,
        close=close_connection,
        requires_row=requires_row,
        retry_delay=delay_after,
        encode_result=partial(encode_result, max_bytes=setting("RESULT_MAX_BYTES")),
        leave_clean=leave_clean,
        heartbeat_seconds=setting("HEARTBEAT_SECONDS"),
        lease_seconds=setting("LEASE_SECONDS"),
        cancel_grace_seconds=setting("CANCEL_GRACE_SECONDS"),
    )


def requires_row(name: str) -> bool:
    """Say whether a task may run only with an admitted row: the offered ones, but for plain."""
    task = current_app.tasks.get(name)
    return hasattr(task, "fairshift_offer") and not offer_of(task).plain


def close_connection() -> None:
    """Drop this thread's connection after an error; the next statement opens a new one."""
    connection.close()


def leave_clean() -> None:
    """Drop connections that a task has left inside a transaction."""
    for open_connection in connections.all(initialized_only=True):
        if open_connection.in_atomic_block or open_connection.closed_in_transaction:
            open_connection.in_atomic_block = False
            open_connection.savepoint_ids = []
            open_connection.atomic_blocks = []
            open_connection.needs_rollback = False
            open_connection.closed_in_transaction = False
            open_connection.run_on_commit = []
            if open_connection.connection is not None:
                open_connection.connection.close()
                open_connection.connection = None
