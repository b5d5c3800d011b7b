"""The fixtures of flows: real servers with empty data, real processes, and a judge."""

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis
from django.apps import apps
from django.conf import settings
from django.db import connection, connections
from django.test import override_settings
from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

import tests.flows.tasks
import tests.tasks  # noqa: F401 - both register the tasks that scenes submit
from jobs.core.states import ACTIVE
from jobs.models import Owner, Run, Submission, WebhookEndpoint
from jobs.models.owner import slug_of
from jobs.system.notices import rounds
from jobs.system.partitions import make_partitions
from jobs.system.periodic import make_missing
from tests.audit import EMPTY_AUDIT
from tests.few_partitions import django_db_setup
from tests.flows.installation import Installation, installed
from tests.flows.processes import QUICK, Layout, Processes, database_url, judged
from tests.flows.world import broker_client, make_owner
from tests.judge import SubmitLog, Verdict
from tests.judge.log import SubmitEvent
from tests.periodic import make_cursor
from tests.proxy import Proxy
from tests.waiting import wait_for

__all__ = ["django_db_setup"]

OURS = ("jobs", "django_celery_beat", "django_celery_results")
HERE = Path(__file__).parent
# In the order of their keys. Deleting disturbs no worker; TRUNCATE would wait for all of them.
OF_RUNS = (
    "jobs_missed",
    "jobs_backfill",
    "jobs_outbox",
    "jobs_idempotencykey",
    "jobs_log",
    "jobs_attempt",
    "jobs_run",
    "jobs_rollout",
    "jobs_submission",
    "jobs_job",
    "jobs_target",
    "django_celery_results_chordcounter",
    "django_celery_results_taskresult",
)

HURRIED = ("fairshift.system.rescue", "fairshift.system.sweep")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put scenes that share processes side by side: another layout costs four boots."""
    places = [number for number, item in enumerate(items) if item.path.parent == HERE]
    scenes = sorted((items[number] for number in places), key=_turn)
    for number, item in zip(places, scenes, strict=True):
        items[number] = item


def _turn(item: Any) -> tuple[int, str]:
    """Return where a scene comes: those with shared workers by layout, an installation's last."""
    for turn, fixture in ((3, "installation"), (2, "processes"), (1, "stack")):
        if fixture in item.fixturenames:
            given = item.callspec.params if hasattr(item, "callspec") else {}
            layout = given.get("layout") or _layout_of(item.module)
            return turn, repr(layout) if fixture == "stack" else ""
    return 0, ""


def _layout_of(module: Any) -> Layout:
    return getattr(module, "LAYOUT", Layout())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of every log beside a failure."""
    report = yield
    scene = getattr(item, "funcargs", {}).get("scene")
    if report.failed and scene is not None:
        report.sections.append(("logs of the processes", scene.log_ends()))
    return report


@pytest.fixture(scope="package")
def db(django_db_setup: None, django_db_blocker: pytest.FixtureDef) -> Iterator[None]:
    """The test database with real commits that other processes see, and short times.

    It replaces pytest-django's fixture of this name, which makes the database: no
    transaction and no flush around each test, since workers live longer than one.
    """
    quick = override_settings(FAIRSHIFT={**settings.FAIRSHIFT, **QUICK})
    with django_db_blocker.unblock(), quick:
        yield
        _empty()
        connections.close_all()


@pytest.fixture(scope="package")
def shared(db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """The long-lived processes: started by the first scene that wants them."""
    processes = Processes(tmp_path_factory.mktemp("shared"))
    yield processes
    processes.stop()


@pytest.fixture(scope="module")
def layout(request: pytest.FixtureRequest) -> Layout:
    """The shared workers of a module: its LAYOUT, or its parameters of this fixture."""
    return getattr(request, "param", _layout_of(request.module))


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, shared: Processes, layout: Layout, tmp_path: Path
) -> Iterator[Processes]:
    """The processes of this scene, over empty tables and empty logs."""
    wants_own = "processes" in request.fixturenames
    processes = Processes(tmp_path) if wants_own else shared
    if wants_own or shared.layout != layout or not _is_at_rest(shared):
        shared.stop()
        _empty()
        _hurry_beat()
    else:
        _forget_runs()
    processes.tasks.path.write_bytes(b"")
    (processes.folder / "submits.log").write_bytes(b"")
    yield processes
    if wants_own:
        processes.stop()


@pytest.fixture
def processes(scene: Processes, owner: Owner) -> Processes:
    """A factory of processes for a scene that kills, restarts or starves them."""
    return scene


@pytest.fixture
def stack(scene: Processes, owner: Owner, layout: Layout) -> Processes:
    """Workers in this layout, the system's worker and beat, shared by all scenes that fit."""
    if not scene.started:
        scene.start_layout(layout)
    scene.ready()
    return scene


@pytest.fixture
def owner(scene: Processes) -> Owner:
    """The owner acme, without limits."""
    return make_owner("acme")


@pytest.fixture
def no_endpoints(db: None) -> Iterator[None]:
    """No endpoint of a scene stays, and no end is recorded for it."""
    yield
    WebhookEndpoint.objects.all().delete()
    rounds.notify()


@pytest.fixture
def broker(db: None) -> Iterator[redis.Redis]:
    """A client of the Redis that is the broker."""
    with broker_client() as client:
        yield client


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Between the worker and Redis; callers go past it."""
    with Proxy(settings.REDIS_URL) as proxy:
        yield proxy


@pytest.fixture
def submits(scene: Processes) -> SubmitLog:
    """The log in which submitters note their submits; `verdict()` reads it."""
    return SubmitLog(scene.folder / "submits.log")


@pytest.fixture
def verdict(scene: Processes, submits: SubmitLog) -> Callable[..., Verdict]:
    """Have the judge look at logs and rows; a bad verdict fails the test.

    Without arguments the submitters' log says what was asked for; with them, these
    runs and submissions were asked for and nothing else.
    """

    def look(*submitted: Run | Submission) -> Verdict:
        asked = _as_events(submitted) if submitted else submits.path
        return judged(database_url(), scene.tasks.path, asked)

    return look


def _as_events(submitted: Sequence[Run | Submission]) -> list[SubmitEvent]:
    events = []
    for number, item in enumerate(submitted):
        runs = [item.id] if isinstance(item, Run) else item.runs.values_list("id", flat=True)
        ids = tuple(str(run_id) for run_id in runs)
        key = f"submit-{number}"
        events.append(SubmitEvent(event="intend", key=key, count=len(ids)))
        events.append(SubmitEvent(event="ok", key=key, ids=ids, total=len(ids)))
    return events


def _is_at_rest(shared: Processes) -> bool:
    """Say whether the shared processes are all up, and no run of an old scene is open."""
    if not shared.started or not shared.all_alive():
        return False
    return not Run.objects.filter(state__in=ACTIVE).exists()


def _nobody_connected() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0] == 0


def _forget_runs() -> None:
    with connection.cursor() as cursor:
        for table in OF_RUNS:
            cursor.execute(f"DELETE FROM {table}")


def _empty() -> None:
    """Empty our tables and Redis, and put back what every installation has."""
    assert connection.settings_dict["NAME"].startswith("test_")
    wait_for(_nobody_connected, what="every process to leave the database")
    tables = [
        model._meta.db_table
        for label in OURS
        for model in apps.get_app_config(label).get_models()
        if model._meta.managed
    ]
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_AUDIT)
        cursor.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY CASCADE")
    slug_of.cache_clear()  # as after `flush`
    make_partitions()
    make_missing()
    make_cursor()
    with broker_client() as client:
        client.flushdb()


def _hurry_beat() -> None:
    """Have rescue and sweep sent every second: scenes wait for these."""
    second, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    PeriodicTask.objects.filter(task__in=HURRIED).update(interval=second)
    PeriodicTasks.update_changed()


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One installation for all scenes that break its servers; they come last."""
    with installed(tmp_path_factory.mktemp("installation")) as installation:
        yield installation


@pytest.fixture
def installation(running: Installation) -> Installation:
    """The installation, at work and without runs."""
    running.begin()
    return running
