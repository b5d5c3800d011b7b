"""Where an invocation measures: a database of its own, an empty Redis, a folder for logs."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection, connections

from tests.benchmarks.servers import client
from tests.benchmarks.sides import fair, stock
from tests.benchmarks.world import BenchmarkError, World
from tests.flows.processes import database_url

ROOT = Path(__file__).resolve().parents[2]
TASKS = "tests.benchmarks.tasks"


@contextmanager
def world_of(*, rounds: int, is_quick: bool, is_large: bool) -> Iterator[World]:
    """Make the world of one invocation, and leave nothing of it behind.

    Raises BenchmarkError when Redis holds something: it would be lost.
    """
    with client(settings.REDIS_URL) as redis, tempfile.TemporaryDirectory() as folder:
        if redis.dbsize():
            raise BenchmarkError("This Redis is not empty, and benchmarks flush it: use another.")
        # The stock app reads it when it is imported, here as in its workers.
        os.environ.setdefault("REDIS_URL", settings.REDIS_URL)
        kept = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
        try:
            yield World(
                folder=Path(folder),
                redis=redis,
                environment=_environment(Path(folder) / "ran.log"),
                stock=stock(),
                fair=fair(),
                rounds=rounds,
                is_quick=is_quick,
                is_large=is_large,
            )
        finally:
            connections.close_all()
            redis.flushdb()
            connection.creation.destroy_test_db(kept, verbosity=0)


def _environment(log: Path) -> dict[str, str]:
    """Return the environment of every worker: as in production, nothing is tuned."""
    import tests.benchmarks.tasks  # noqa: F401 - for those who submit durable runs here

    return {
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": "only for benchmarks",
        "DEBUG": "0",
        "PYTHONPATH": str(ROOT),
        "FAIRSHIFT_TASKS": TASKS,
        "BENCH_LOG": str(log),
    }
