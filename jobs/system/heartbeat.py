"""Heartbeats of worker nodes, in PostgreSQL and by its clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from uuid import UUID

from fleet import Node
from jobs.core import sql
from jobs.runs.unblocking import publish_with_known_task
from jobs.system.rescue import rescue_runs

_BEAT = """
UPDATE jobs_worker SET heartbeat_at = clock_timestamp(), slots = %s, queues = %s
WHERE id = %s RETURNING id
"""
_ENTER = """
INSERT INTO jobs_worker
    (id, hostname, pid, pool, slots, queues, tasks, version, started_at, heartbeat_at)
VALUES (%(id)s, %(hostname)s, %(pid)s, %(pool)s, %(slots)s, %(queues)s, %(tasks)s, %(version)s,
        clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO NOTHING
"""
_CANCELLED = "SELECT id FROM jobs_run WHERE worker_id = %s AND state = 'cancelling'"
_LEAVE = "UPDATE jobs_worker SET stopped_at = clock_timestamp() WHERE id = %s"


def beat(node: Node, held: Sequence[str]) -> list[str]:
    """Record a heartbeat; return the ids of the worker's runs that it is to cancel.

    A worker without queues is not alive, but keeps its runs. Runs that were admitted to it and are
    not in `held` are taken back. The first heartbeat inserts the worker's row, and publishes runs
    that have waited for a worker that knows their task.
    """
    if not sql.query(_BEAT, [node.slots, json.dumps(list(node.queues)), node.id]):
        facts = {
            "id": node.id,
            "hostname": node.hostname,
            "pid": node.pid,
            "pool": node.pool,
            "slots": node.slots,
            "queues": json.dumps(list(node.queues)),
            "tasks": None if node.tasks is None else json.dumps(list(node.tasks)),
            "version": _version(),
        }
        sql.query(_ENTER, facts)
        # The sweep publishes the rest: a backlog must not delay a worker's boot.
        publish_with_known_task(is_first_chunk_only=True)
    rescue_runs(worker_id=node.id, held=[UUID(run_id) for run_id in held])
    return [str(row["id"]) for row in sql.query(_CANCELLED, [node.id])]


def leave(worker_id: UUID) -> None:
    """Mark a worker as stopped and rescue its runs at once."""
    sql.query(_LEAVE, [worker_id])
    rescue_runs()


def _version() -> str:
    try:
        return version("fairshift")
    except PackageNotFoundError:
        return "unpackaged"
