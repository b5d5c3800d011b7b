"""What is known of runs that should have ended: their rows, their hints in Redis, their workers."""

import json
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import redis

from fleet.keys import queue_key
from fleet.transport import scripts
from fleet.transport.envelope import hint_id
from tests.machines.servers import Database

QUEUE: Final = "jobs"
ROWS: Final = """
SELECT coalesce(json_agg(r), '[]') FROM (
    SELECT r.id, o.slug AS owner, r.state, r.blocked_by, r.token, r.worker_id, r.history,
        r.hint_check_at - clock_timestamp() AS checked_in,
        (SELECT count(*) FROM jobs_outbox x WHERE r.id = ANY(x.run_ids)) AS in_outbox
    FROM jobs_run r JOIN jobs_owner o ON o.id = r.owner_id
    WHERE r.ended_at IS NULL ORDER BY r.id LIMIT 20) r
"""
NODES: Final = """
SELECT coalesce(json_agg(w), '[]') FROM (
    SELECT id, hostname, stopped_at, clock_timestamp() - heartbeat_at AS silent_for
    FROM jobs_worker ORDER BY started_at) w
"""
LOCKS: Final = """
SELECT coalesce(json_agg(a), '[]') FROM (
    SELECT pid, client_addr, state, wait_event, clock_timestamp() - xact_start AS since,
        left(query, 200) AS query
    FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()) a
"""


def remains(database: Database, client: redis.Redis) -> str:
    """Return what PostgreSQL and Redis know of the runs that have not ended."""
    rows: Any = database.ask(ROWS)
    lines = ["rows", *map(_line, rows), "workers", *map(_line, database.ask(NODES))]  # type: ignore[call-overload]
    lines += ["transactions", *map(_line, database.ask(LOCKS))]  # type: ignore[call-overload]
    with suppress(redis.RedisError):
        lines += ["Redis", *_in_redis(client, rows)]
    return "\n".join(lines)


def _in_redis(client: Any, rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        found = scripts.run(client, QUEUE, "find", hint_id(row["id"], row["token"] + 1))
        yield f"{row['id']} {found}"
    owners = sorted({row["owner"] for row in rows})
    for owner in owners and scripts.run(client, QUEUE, "owners", 0, 0, *owners):
        yield f"owner {owner}"
    seconds, micros = client.time()
    for name, at in client.zrange(queue_key(QUEUE, "workers"), 0, -1, withscores=True):
        held = client.hkeys(queue_key(QUEUE, "held", name.decode()))
        yield f"worker {name.decode()}, {seconds + micros / 1e6 - at / 1e6:.1f} s ago: {held}"
    yield f"state {client.hgetall(queue_key(QUEUE, 'state'))}"
    yield f"counters {client.hgetall(queue_key(QUEUE, 'counters'))}"


def show_threads(pids: Iterable[int | None]) -> None:
    """Have Celery's workers write the stacks of their threads to their logs."""
    for pid in pids:
        if pid is not None:
            os.kill(pid, signal.SIGUSR1)


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row)
