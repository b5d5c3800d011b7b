"""Checks of PostgreSQL: its version, its settings, and the state of Fairshift's tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now

from fleet import counted
from jobs.calendars import changes
from jobs.core import barrier
from jobs.core.conf import setting, unknown_settings
from jobs.definitions import periodic_tasks
from jobs.models import Leader, Worker
from jobs.runs.reads.unknown_tasks import unknown_tasks
from jobs.system import periodic
from jobs.system.lease import BEAT
from jobs.system.notices.unsent import all_rows, unsent_queue
from jobs.system.partitions import ALARM_DAYS, days_left

OLDEST_VERSION = 15
# If one is off, a token could be issued twice after a crash of the server.
DURABILITY = ("fsync", "full_page_writes", "synchronous_commit")


@register(Tags.database)
def check_database(
    *, databases: Sequence[str] | None = None, **_arguments: Any
) -> list[CheckMessage]:
    """Refuse another engine, an old PostgreSQL, and one that may lose commits."""
    return [
        message
        for alias in databases or ()
        for message in _answered(partial(_problems, connections[alias]))
    ]


@register("fairshift", deploy=True)
def check_deployed_database(**_arguments: Any) -> list[CheckMessage]:
    """Check the default database, also without `--database`, and its migrations."""
    return _answered(deployed_problems)


@register("fairshift", deploy=True)
def check_driver(**_arguments: Any) -> list[CheckMessage]:
    """Warn if psycopg 3, which Fairshift requires, has taken the place of psycopg2 in Django."""
    if connections["default"].vendor != "postgresql" or find_spec("psycopg2") is None:
        return []
    return [
        checks.Warning(
            "psycopg2 is installed, and Django uses psycopg 3, because Fairshift installs it: code"
            " that uses psycopg2 on Django's connections fails.",
            hint="Look for psycopg2 in your code (docs/start/from-celery.md). If nothing needs it,"
            " uninstall it; if something other than Django does, silence this with"
            " SILENCED_SYSTEM_CHECKS.",
            id="fairshift.W101",
        )
    ]


def deployed_problems() -> list[CheckMessage]:
    """Return what is wrong with the default database; raises errors of a database."""
    connection = connections["default"]
    return list(_problems(connection)) or list(_unmigrated(connection)) or list(_warnings())


def _answered(look: Callable[[], Iterable[CheckMessage]]) -> list[CheckMessage]:
    try:
        return list(look())
    except (OperationalError, InterfaceError) as error:
        return [unreachable(" ".join(str(error).split()))]


def _warnings() -> Iterator[CheckMessage]:
    # With wrong settings (E001, E009) these cannot be read.
    if not unknown_settings() and settings.USE_TZ:
        for check in (
            _partitions,
            _openings,
            _policies,
            _barrier,
            _idle_workers,
            _system_workers,
            _periodic_tasks,
            _unsent_notices,
            _unknown_tasks,
        ):
            yield from check()


def _problems(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    if connection.vendor != "postgresql":
        yield Error(
            f"The database {connection.alias!r} is {connection.display_name}, not PostgreSQL.",
            hint="Give DATABASES PostgreSQL's engine; in Fairshift's own project set DATABASE_URL"
            " to postgresql://…, or leave it empty for the embedded one.",
            id="fairshift.E101",
        )
        return
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        version = int(cursor.fetchone()[0]) // 10_000
        cursor.execute(
            "SELECT name FROM pg_settings WHERE name = ANY(%s) AND setting = 'off'",
            [list(DURABILITY)],
        )
        switched_off = sorted(name for (name,) in cursor.fetchall())
    if version < OLDEST_VERSION:
        yield Error(
            f"PostgreSQL {version} is too old.",
            hint=f"Use PostgreSQL {OLDEST_VERSION} or newer.",
            id="fairshift.E103",
        )
    for name in switched_off:
        yield Error(
            f"PostgreSQL runs with {name} off: after a crash of its machine, committed runs"
            " could be missing and a token could be issued twice.",
            hint=f"Set {name} to on, for the server, the database and the role.",
            id="fairshift.E104",
        )


def _unmigrated(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        yield Error(
            f"{counted(len(missing), 'migration')} not applied; the first is {missing[0][0]}.",
            hint="Run manage.py migrate.",
            id="fairshift.E105",
        )


def _partitions() -> Iterator[CheckMessage]:
    days = days_left()
    if days < ALARM_DAYS:
        yield checks.Warning(
            f"Partitions for runs are made only for {counted(max(days, 0), 'more day')}.",
            hint="See why fairshift.system.make_partitions does not run; later runs go to the"
            " default partition and are moved once it does.",
            id="fairshift.W106",
        )


def _openings() -> Iterator[CheckMessage]:
    until = changes.known_until()
    if until is not None and until < datetime.now(UTC) + timedelta(days=1):
        yield checks.Warning(
            f"Openings of calendars are made only until {until:%Y-%m-%d %H:%M} UTC.",
            hint="See why fairshift.system.extend_openings does not run; later, no run starts to"
            " which such a calendar applies.",
            id="fairshift.W107",
        )


def _policies() -> Iterator[CheckMessage]:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT row_security_active('jobs_run'), current_user")
        is_active, user = cursor.fetchone()
    if is_active:
        yield Error(
            f"The database user {user} does not own Fairshift's tables and is subject to their"
            " policies: it cannot store runs, because COPY does not work under policies.",
            hint=f"As a superuser: ALTER ROLE {user} BYPASSRLS (SECURITY.md).",
            id="fairshift.E106",
        )


def _barrier() -> Iterator[CheckMessage]:
    if not barrier.role():
        yield checks.Warning(
            f"Requests of the API have no second barrier between owners: the database user may not"
            f" act as the role {barrier.ROLE}.",
            hint="As an administrator of PostgreSQL: CREATE ROLE fairshift_tenant NOLOGIN; GRANT"
            " fairshift_tenant TO the user; then as the owner of the tables: SELECT"
            " jobs_grant_tenant(); and restart the web processes.",
            id="fairshift.W112",
        )


def _idle_workers() -> Iterator[CheckMessage]:
    for worker in Worker.objects.beating().filter(queues=[]):
        yield checks.Warning(
            f"Worker {worker} {worker.why_idle()}: it takes no runs, and does not count as alive.",
            hint="If it does not drain, it has received pool_shrink or cancel_consumer: restart it,"
            " and see FAIRSHIFT_REMOTE_COMMANDS.",
            id="fairshift.W109",
        )


def _system_workers() -> Iterator[CheckMessage]:
    """Warn if workers have run, but no system worker or no beat runs now."""
    if not Worker.objects.exists():
        return
    queue = setting("SYSTEM_QUEUE")
    if not any(queue in worker.queues for worker in Worker.objects.alive()):
        yield checks.Warning(
            f"No worker takes from queue {queue!r}: nothing is promoted, rescued or swept.",
            hint=f"Start one for it alone: celery worker --queues {queue}"
            " (docs/start/own-project.md).",
            id="fairshift.W110",
        )
    if not Leader.objects.filter(name=BEAT, until__gt=Now()).exists():
        yield checks.Warning(
            "No celery-beat runs: no job comes due, and nothing is promoted, rescued or swept.",
            hint="Start celery beat, on two machines if you can.",
            id="fairshift.W111",
        )


def _periodic_tasks() -> Iterator[CheckMessage]:
    if names := periodic.missing():
        yield checks.Warning(
            f"PeriodicTasks of Fairshift are missing: {', '.join(names)}.",
            hint="A running celery-beat makes them within a minute, and so does manage.py migrate."
            " If an operator has changed the task of one with that name, delete it.",
            id="fairshift.W116",
        )
    if count := periodic_tasks.count_missing():
        yield checks.Warning(
            f"{counted(count, 'job')} with an interval in seconds"
            f" {'has' if count == 1 else 'have'} no PeriodicTask: not triggered.",
            hint="The round fairshift.system.settle makes them in 5 s: see why it does not run.",
            id="fairshift.W117",
        )


def _unsent_notices() -> Iterator[CheckMessage]:
    queues = {queue for worker in Worker.objects.alive() for queue in worker.queues}
    if queue := unsent_queue(queues, *all_rows()):
        yield checks.Warning(
            f"No worker takes from queue {queue!r}: webhooks and mails wait.",
            hint=f"Start one for it: celery worker --queues {queue} --pool threads"
            " (docs/operate/notices.md).",
            id="fairshift.W115",
        )


def _unknown_tasks() -> Iterator[CheckMessage]:
    for found in unknown_tasks():
        yield checks.Warning(
            f"No worker of queue {found.queue!r} knows task {found.task}:"
            f" {found.count:,} {'run waits' if found.count == 1 else 'runs wait'} for one.",
            hint="Start workers that know it, move the runs to another task (`manage.py fleet"
            " move-task`), or end them as failed (`manage.py fleet fail-task`).",
            id="fairshift.W108",
        )


def unreachable(reason: str) -> CheckMessage:
    """Return the error of a PostgreSQL that does not answer."""
    return Error(
        f"PostgreSQL does not answer: {reason}",
        hint="Start it, or correct DATABASES (DATABASE_URL in Fairshift's own project).",
        id="fairshift.E102",
    )
