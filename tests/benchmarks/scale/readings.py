"""Reads what all processes and both servers have used so far; both are on this machine."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from django.db import connection

from tests.benchmarks.scale.cost import Reading
from tests.benchmarks.world import BenchmarkError, World
from tests.processes import descendants

MAIN: Final = "worker, main process"
CHILDREN: Final = "worker, children"
POSTGRES: Final = "PostgreSQL"
REDIS: Final = "Redis"
CALLER: Final = "caller"
"""This process: it submits, and then only looks."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_COUNTED: Final = """
SELECT xact_commit, numbackends, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
FROM pg_stat_database WHERE datname = current_database()
"""
_BYTES: Final = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
FROM pg_class WHERE relkind = 'r' AND relname ~ '^jobs_(run|attempt|submission|outbox)(_|$)'
"""


def reading(world: World, *, mains: Mapping[int, str] | None = None) -> Reading:
    """Return what has been used by now. `mains` are main processes, each with its kind.

    The children of a process of the kind MAIN are counted as CHILDREN, those of others with it.
    Raises BenchmarkError if a server is not on this machine.
    """
    with connection.cursor() as cursor:
        # Commits of this session are counted at once; other sessions report each second.
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(_COUNTED)
        commits, sessions, wal = cursor.fetchone()
        cursor.execute("SELECT pg_backend_pid()")
        postmaster = _parent(cursor.fetchone()[0])
    server = int(world.redis.info("server")["process_id"])
    cpu = {
        POSTGRES: tree_seconds(postmaster, "postgres"),
        REDIS: tree_seconds(server, "redis"),
        CALLER: time.process_time(),
    }
    for pid, kind in (mains or {}).items():
        if kind == MAIN:
            own = _own(pid)
            cpu[MAIN] = cpu.get(MAIN, 0.0) + own
            cpu[CHILDREN] = cpu.get(CHILDREN, 0.0) + max(0.0, tree_seconds(pid) - own)
        else:
            cpu[kind] = cpu.get(kind, 0.0) + tree_seconds(pid)
    return Reading(
        at=time.monotonic(),
        machine=_machine(),
        cpu=cpu,
        counts={"WAL bytes": wal, "commits of PostgreSQL": commits},
        connections=(sessions, world.redis.info("clients")["connected_clients"]),
    )


def bytes_on_disk() -> int:
    """Return the size of runs, attempts and submissions, with their indexes."""
    with connection.cursor() as cursor:
        cursor.execute(_BYTES)
        return int(cursor.fetchone()[0])


def tree_seconds(pid: int, program: str = "") -> float:
    """Return the CPU seconds of a process and of all below it, also of those that have ended."""
    if program and program not in _name(pid):
        raise BenchmarkError(f"{program} is not on this machine: its CPU time cannot be read")
    return sum(_own(one) + _ended_children(one) for one in {pid} | descendants(pid))


def _machine() -> float:
    """Return the CPU seconds of the whole machine: not idle, and taken away by its host."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _own(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def _ended_children(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[13]) + int(fields[14])) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name; none of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
