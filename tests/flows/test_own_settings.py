"""A project on Debian's PostgreSQL, with JIT, and with settings of its own for its Celery tasks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jobs.management.stack.programs import beat, job_worker, system_worker
from jobs.management.stack.stack import Stack
from tests.debian import debian_servers
from tests.flows.installation import SHIPPED, last
from tests.flows.kept import kept
from tests.flows.processes import Processes
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

SUBMIT = """
from jobs import submit
from jobs.models import Owner

Owner.objects.create(slug="acme")
for number in range(3):
    submit("tests.add", owner="acme", x=number, y=1)
    submit("tests.fail", owner="acme", times=9, max_attempts=1)
"""
LAG = """
SELECT extract(epoch FROM clock_timestamp() - counted_until) - 60 FROM jobs_rollupposition
"""
COUNTED = "SELECT coalesce(sum(count), 0) FROM jobs_rollup WHERE outcome = 'failed'"
LONGEST = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0)
FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%INSERT INTO jobs_rollup (%'
"""
PULSED = "SELECT beat_at FROM jobs_cursor"
HELD_UP = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
COUNTING_SECONDS = 10.0
"""Counting a minute takes 0.1 s; compiling its statement took 20 to 40 s."""
LIMIT_SECONDS = 2.0
"""The project's time limit for its tasks."""
KILLS = (
    "time limit",
    "Timed out waiting for UP",
    "WorkerLostError",
    "ended while it booted",
    "exited with",
)
"""What Celery or Fairshift log of a task or process that was killed."""


class Project(Processes):
    """An installation on servers that are as Debian ships them."""

    def __init__(self, folder: Path, urls: dict[str, str]) -> None:
        super().__init__(folder)
        self.urls = {**urls, **SHIPPED, "DJANGO_SETTINGS_MODULE": "tests.flows.own_settings"}

    def ask(self, query: str) -> Any:
        """Return the one value that a query answers; None without a row."""
        with psycopg.connect(self.urls["DATABASE_URL"]) as connection:
            row = connection.execute(query).fetchone()  # type: ignore[call-overload]
            return None if row is None else row[0]

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """Have the statistics wait for a lock until the block ends."""
        with psycopg.connect(self.urls["DATABASE_URL"]) as connection:
            connection.execute("SELECT FROM jobs_rollupposition FOR UPDATE")
            wait_for(lambda: self.ask(HELD_UP), seconds=90, what="a round that waits")
            yield

    @contextmanager
    def running(self) -> Iterator[Stack]:
        programs = [job_worker("jobs", slots=2), system_worker(), beat()]
        with kept(self, *programs, restart=False) as stack:
            yield stack

    def log_of(self, name: str) -> str:
        return (self.folder / "kept" / f"{name}.log").read_text(errors="replace")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with debian_servers() as urls:
        found = Project(tmp_path_factory.mktemp("project"), urls)
        migrated = found.manage("migrate", "--verbosity", "0")
        assert migrated.returncode == 0, migrated.stderr
        yield found


def test_the_project_s_settings_do_not_touch_the_system_s_tasks(project: Project) -> None:
    """Statistics lag by two minutes at most, and no task or process of Fairshift is killed."""
    assert project.ask("SELECT pg_jit_available() AND current_setting('jit')::bool") is True
    lags: list[float] = []
    counting: list[float] = []

    def look(query: str) -> Any:
        stack.watch()
        counting.append(float(project.ask(LONGEST)))
        lags.append(float(project.ask(LAG) or 0.0))
        return project.ask(query)

    with project.running() as stack:
        submitted = project.manage("shell", "-c", SUBMIT)
        assert submitted.returncode == 0, submitted.stderr

        wait_for(lambda: look(COUNTED) == 3, seconds=150, what="the first minute", every=1.0)
        with project.held_up():
            last(2 * LIMIT_SECONDS)
            pulsed = f"SELECT beat_at > '{project.ask(PULSED)}' FROM jobs_cursor"
            wait_for(lambda: project.ask(pulsed), what="beat, which runs no round itself")
        before = project.ask("SELECT counted_until FROM jobs_rollupposition")
        moved = f"SELECT counted_until > '{before}' FROM jobs_rollupposition"
        wait_for(lambda: look(moved), seconds=90, what="the next minute", every=1.0)
        status = json.loads(project.manage("status", "--json", "--timeout", "60").stdout)
    assert max(lags) <= 120.0
    assert max(counting) <= COUNTING_SECONDS
    assert status["failed_last_hour"] == 3
    assert "statistics" not in [problem["code"] for problem in status["problems"]]
    for name in ("jobs", "system", "beat"):
        log = project.log_of(name)
        assert [kill for kill in KILLS if kill in log] == [], log[-4000:]
