"""The named world: two owners with unlike weights, one stranger; real commits where asked for."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.db import connection

import tests.tasks  # noqa: F401  registers the tasks that scenes submit
from fleet.transport import leases
from jobs.core import prepared, sql
from jobs.models import Owner
from jobs.runs import dispatch
from tests.audit import EMPTY_AUDIT
from tests.few_partitions import django_db_setup
from tests.flows.world import broker_client
from tests.jobs.keys import KEY_1, use_ring
from tests.passwords import quick_passwords
from tests.periodic import make_cursor

__all__ = ["django_db_setup", "quick_passwords"]

# In the order of their keys. Deleting is faster than TRUNCATE over a hundred partitions.
TABLES = (
    *("jobs_outbox", "jobs_idempotencykey"),
    *("jobs_tick", "jobs_missed", "jobs_backfill"),
    *("jobs_rollup", "jobs_rolluptotal", "jobs_rollupposition"),
    *("jobs_metrictotal", "jobs_metricowner"),
    *("jobs_webhookdelivery", "jobs_webhookendpoint"),
    *("jobs_maildigest", "jobs_mailsubscription", "jobs_jobalarm"),
    *("jobs_endlistener", "jobs_end", "jobs_endmark", "jobs_hookcall"),
    *("jobs_log", "jobs_attempt", "jobs_run"),
    *("jobs_rollout", "jobs_submission"),
    *("jobs_attachment", "jobs_opening", "jobs_windowdecision", "jobs_window", "jobs_calendar"),
    *("jobs_targetgroup_targets", "jobs_targetgroup", "jobs_job", "jobs_target"),
    *("jobs_apitoken", "jobs_membership", "jobs_owner"),
    *("jobs_worker", "jobs_leader"),
    *("django_celery_results_chordcounter", "django_celery_results_taskresult"),
)
PARTITIONED = ("jobs_log", "jobs_attempt", "jobs_run")


@pytest.fixture
def db(request: pytest.FixtureRequest) -> None:
    """A transaction that is rolled back, as pytest-django's; with `committed`, real commits."""
    is_committed = "committed" in request.fixturenames
    request.getfixturevalue("_real_commits" if is_committed else "_django_db_helper")


@pytest.fixture
def committed(db: None) -> None:
    """Real commits, which other threads see; what they leave is removed."""


@pytest.fixture
def _real_commits(
    django_db_setup: None, django_db_blocker: Any, broker: redis.Redis
) -> Iterator[None]:
    with django_db_blocker.unblock():
        # A scene that waits for its own lock fails, where it would hang.
        sql.query("SET lock_timeout = '10s'")
        yield
        _delete_rows()
        # A scene may have moved it: jobs of the next one would be late.
        make_cursor()
        # Not closed: the next scene need not read the catalogue anew.
        sql.query("RESET lock_timeout")


def _delete_rows() -> None:
    """Leave no row; of the partitions of runs, only those that ever held one are touched."""
    partitions = sql.query(
        "SELECT relid::text AS name FROM unnest(%s::regclass[]) AS parent, "
        "pg_partition_tree(parent) WHERE isleaf AND pg_relation_size(relid) > 0",
        [list(PARTITIONED)],
    )
    tables = [*(row["name"] for row in partitions), *TABLES]
    deletes = [f"DELETE FROM {table}" for table in tables if table not in PARTITIONED]
    with connection.cursor() as cursor:
        cursor.execute("; ".join([*deletes, EMPTY_AUDIT]))


@pytest.fixture
def broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """A client of the Redis that is the broker, empty before and after.

    A publish may take longer than in production: each scene connects anew, on a busy machine.
    """
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "PUBLISH_TIMEOUT_SECONDS": 10.0}
    monkeypatch.setattr("fleet.broker.broker.CONNECT_PATIENCE", 10.0)
    dispatch.broker.cache_clear()
    # What a scene before this one has held is not to be put back into this one's queues.
    leases._of_broker.clear()
    with broker_client() as client:
        client.flushdb()
        yield client
        client.flushdb()
    dispatch.broker.cache_clear()


@pytest.fixture
def encrypted(settings: Any) -> None:
    """A key ring with one key: what is written from now on is encrypted with key 1."""
    use_ring(settings, KEY_1)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the prepared statements that are run from now on."""
    names: list[str] = []
    real = prepared.run_over_all

    def seen(name: str, parameters: Any) -> Any:
        names.append(name)
        return real(name, parameters)

    monkeypatch.setattr(prepared, "run_over_all", seen)
    return names


@pytest.fixture
def no_ticks(db: None) -> None:
    """No ticks, and a cursor at this moment."""
    sql.query("DELETE FROM jobs_tick")
    make_cursor()


@pytest.fixture
def acme(db: None) -> Owner:
    """An owner with three times northwind's share."""
    return Owner.objects.create(slug="acme", weight=3)


@pytest.fixture
def northwind(db: None) -> Owner:
    """An owner with a small share."""
    return Owner.objects.create(slug="northwind", weight=1)


@pytest.fixture
def stranger(db: None) -> Owner:
    """An owner of whom the others must learn nothing."""
    return Owner.objects.create(slug="stranger")
