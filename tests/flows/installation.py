"""An installation on servers of its own, which a scene may break without disturbing others."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psycopg

from jobs.core.conf import RULES
from jobs.management.stack.programs import beat, job_worker, system_worker
from tests.few_partitions import KEPT_DAYS, LATER
from tests.flows.kept import kept
from tests.flows.processes import QUICK, Processes, judged
from tests.flows.servers import Servers, own_servers
from tests.flows.submitters import Submitter
from tests.judge import Verdict
from tests.waiting import wait_for

OWNERS = """
INSERT INTO jobs_owner (slug, name, weight, zone, paused_reason)
VALUES ('acme', '', 1, 'UTC', ''), ('globex', '', 1, 'UTC', '')
"""
HURRY = """
UPDATE django_celery_beat_intervalschedule SET every = 1 WHERE every = 5 AND period = 'seconds'
"""
BEGIN_NOW = """
UPDATE jobs_cursor SET slot = floor(extract(epoch FROM clock_timestamp()) * 2),
    beat_at = clock_timestamp(), again_seen = pg_current_snapshot();
UPDATE django_celery_beat_periodictask SET date_changed = clock_timestamp()
"""
"""Moves the cursor of due times, and what beat takes for its last sends, to the present."""
SHIPPED = {f"FAIRSHIFT_{name}": str(RULES[name].default) for name in QUICK}
"""The settings that scenes shorten, as they are shipped."""
OF_RUNS = (
    "jobs_outbox, jobs_log, jobs_attempt, jobs_run, jobs_backfill, jobs_rollout, jobs_submission"
)
OPEN = "SELECT count(*) FROM jobs_run WHERE ended_at IS NULL"
WAITING = "SELECT count(*) FROM jobs_run WHERE started_at IS NULL"
ENDED = "SELECT count(*) FROM jobs_run WHERE ended_at IS NOT NULL"
HEALED_SECONDS = 10.0


class Installation(Processes):
    """Two workers, the system's worker and beat, and two servers that may be broken."""

    def __init__(self, folder: Path, servers: Servers, *, shipped: bool = False) -> None:
        super().__init__(folder)
        self.servers = servers
        self.urls = {"DATABASE_URL": servers.postgres.url, "REDIS_URL": servers.redis.url}
        if shipped:
            self.urls |= SHIPPED
        servers.sql(BEGIN_NOW)
        servers.sql(OWNERS)
        if not shipped:
            servers.sql(HURRY)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the processes; one that ends fails the scene that looks next."""
        programs = [
            *(job_worker(name, slots=2) for name in ("one", "two")),
            *(system_worker(), beat()),
        ]
        with kept(self, *programs, restart=False) as self.stack:
            yield

    def begin(self) -> None:
        """Begin a scene without runs and with empty logs."""
        self.servers.sql(f"TRUNCATE {OF_RUNS}")
        for name in ("tasks.log", "submits.log"):
            (self.folder / name).write_bytes(b"")

    def submitter(self, *options: str, prefix: str = "steady", **environ: str) -> Submitter:
        """Start a process that submits."""
        return Submitter(self, *options, prefix=prefix, **environ)

    def count(self, query: str) -> int:
        """Return the one number that a query answers."""
        [(number,)] = self.servers.sql(query)
        return int(str(number))

    def caught_up(self, *, seconds: float = HEALED_SECONDS) -> float:
        """Wait until all that was submitted up to now has been started; return the seconds."""
        began_at = time.monotonic()
        waiting = f"{WAITING} AND created_at < '{self.now()}'"
        wait_for(lambda: self.count(waiting) == 0, seconds=seconds, what="runs to start")
        return time.monotonic() - began_at

    def statement(self, text: str) -> None:
        """Run a statement outside of a transaction."""
        with psycopg.connect(self.servers.postgres.url, autocommit=True) as connection:
            connection.execute(text)  # type: ignore[call-overload]

    def now(self) -> str:
        """Return PostgreSQL's time, as text."""
        [(moment,)] = self.servers.sql("SELECT clock_timestamp()::text")
        return str(moment)

    def drained(self, *, seconds: float = 60) -> None:
        """Wait until every run has ended."""

        def rested() -> bool:
            self.stack.watch()
            return self.count(OPEN) == 0

        wait_for(rested, seconds=seconds, what="every run to end")

    def verdict(self) -> Verdict:
        """Have the judge look at logs and rows; a bad verdict fails the test."""
        return judged(self.servers.postgres.url, self.tasks.path, self.folder / "submits.log")


@contextmanager
def installed(
    folder: Path, *, runs: bool = True, shipped: bool = False, disk_bytes: int = 0
) -> Iterator[Installation]:
    """Set an installation up and, with `runs`, start it; afterwards nothing of it is left.

    With `shipped`, its settings and intervals are the defaults, not the short ones of scenes.
    `disk_bytes` is the size of the servers' own disk.
    """
    with own_servers(migrated=True, disk_bytes=disk_bytes) as servers:
        installation = Installation(folder, servers, shipped=shipped)
        if runs:
            for [name] in servers.sql(LATER.format(after_days=KEPT_DAYS)):
                servers.sql(f"DROP TABLE {name}")
        with installation.running() if runs else nullcontext():
            yield installation


def last(seconds: float) -> None:
    """Let a fault last: the one wait here that is for a time, because the time is the fault."""
    time.sleep(seconds)
