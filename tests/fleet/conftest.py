"""The named world of the jobs, for scenes in which a worker meets real rows."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import Celery, current_app
from celery.concurrency.solo import TaskPool

from tests.few_partitions import django_db_setup
from tests.fleet.children import Child
from tests.fleet.nodes import Node
from tests.flows.world import broker_client
from tests.jobs.conftest import _real_commits, acme, broker, committed, db

__all__ = ["_real_commits", "acme", "broker", "committed", "db", "django_db_setup"]


@pytest.fixture
def pool() -> Iterator[Child]:
    with Celery(
        "child", broker="memory://", backend="cache+memory://", set_as_current=False
    ) as app:
        app.conf.update(accept_content=["json"], task_ignore_result=True)
        yield Child(app)


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    """A client of the empty Redis of the tests."""
    with broker_client() as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def channel(broker: redis.Redis) -> Iterator[Any]:
    """A channel of the fair queue's empty broker."""
    assert broker.ping()
    with current_app.connection_for_read() as connection:
        yield connection.default_channel


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node over a pool that runs its tasks at once, in this thread."""
    pool_class = getattr(request, "param", TaskPool)
    node = Node(pool_class(1, app=current_app))
    yield node
    node.end()
