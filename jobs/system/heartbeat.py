"""Heartbeats of worker nodes, in PostgreSQL and by its clock."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from fleet import Asked, Node, Orders
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.crypto import key_ids
from jobs.core.states import State
from jobs.core.version import __version__
from jobs.models.worker import REDIS_PATIENCE
from jobs.runs.unblocking import publish_with_known_key, publish_with_known_task
from jobs.system.hooks import begin_listening
from jobs.system.rescue import rescue_runs

_BEAT = """
WITH beaten AS (
    UPDATE jobs_worker SET heartbeat_at = clock_timestamp(), slots = %(slots)s, queues = %(queues)s,
        clock_ahead_seconds = %(clock)s - extract(epoch FROM clock_timestamp()),
        redis_answered_at = clock_timestamp() - make_interval(secs => %(silent)s)
    WHERE id = %(id)s RETURNING draining_since IS NOT NULL AS drains
)
SELECT drains, %(silent)s > %(patience)s AND EXISTS (
        SELECT FROM jobs_worker AS other
        WHERE other.stopped_at IS NULL AND other.id <> %(id)s
            AND other.heartbeat_at > clock_timestamp() - make_interval(secs => %(lease)s)
            AND other.redis_answered_at
                >= other.heartbeat_at - make_interval(secs => %(patience)s)
    ) AS is_cut_off,
    r.id, r.state, r.token,
    r.look ->> 'token' = r.token::text AND r.look ->> 'answered' IS NULL AS is_asked,
    r.admitted_at < clock_timestamp() - make_interval(secs => %(lease)s) AS is_old
FROM beaten LEFT JOIN jobs_run AS r
    ON r.worker_id = %(id)s AND r.state IN ('admitted', 'running', 'cancelling')
"""
_ENTER = """
INSERT INTO jobs_worker
    (id, hostname, pid, pool, slots, queues, tasks, keys, version, started_at, heartbeat_at,
     redis_answered_at)
VALUES (%(id)s, %(hostname)s, %(pid)s, %(pool)s, %(slots)s, %(queues)s, %(tasks)s, %(keys)s,
        %(version)s, clock_timestamp(), clock_timestamp(),
        clock_timestamp() - make_interval(secs => %(silent)s))
ON CONFLICT (id) DO NOTHING
"""
_LEAVE = "UPDATE jobs_worker SET stopped_at = clock_timestamp() WHERE id = %s"


def beat(node: Node, held: Sequence[str]) -> Orders:
    """Record a heartbeat; return what the worker is to do.

    A worker without queues is not alive, but keeps its runs. Runs that were admitted to it and are
    not in `held` are taken back. The first heartbeat inserts the worker's row, and publishes runs
    that have waited for a worker that knows their task, or has their key.
    """
    facts = {
        "id": node.id,
        "slots": node.slots,
        "queues": json.dumps(list(node.queues)),
        "lease": setting("LEASE_SECONDS"),
        "silent": node.redis_silent_seconds,
        "patience": REDIS_PATIENCE.total_seconds(),
    }
    rows = sql.query(_BEAT, {**facts, "clock": time.time()})
    if not rows:
        _enter(node, facts)
    if any(row["is_old"] and str(row["id"]) not in held for row in rows):
        rescue_runs(worker_id=node.id, held=[UUID(run_id) for run_id in held])
    return Orders(
        cancel=[str(row["id"]) for row in rows if row["state"] == State.CANCELLING],
        look=tuple(Asked(str(row["id"]), row["token"]) for row in rows if row["is_asked"]),
        drains=any(row["drains"] for row in rows),
        is_cut_off=any(row["is_cut_off"] for row in rows),
    )


def _enter(node: Node, facts: dict[str, Any]) -> None:
    sql.query(
        _ENTER,
        {
            **facts,
            "hostname": node.hostname,
            "pid": node.pid,
            "pool": node.pool,
            "tasks": None if node.tasks is None else json.dumps(list(node.tasks)),
            "keys": key_ids(),
            "version": __version__,
        },
    )
    # The ends of its runs are for the hooks that it has imported.
    begin_listening()
    # The sweep publishes the rest: a backlog must not delay a worker's boot.
    publish_with_known_task(is_first_chunk_only=True)
    publish_with_known_key(is_first_chunk_only=True)


def leave(worker_id: UUID) -> None:
    """Mark a worker as stopped and rescue its runs at once."""
    sql.query(_LEAVE, [worker_id])
    rescue_runs()
