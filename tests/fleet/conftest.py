"""The named world of the jobs, for scenes in which a worker meets real rows."""

from collections.abc import Iterator

import pytest
import redis
from celery import Celery

from tests.fleet.children import Child
from tests.flows.world import broker_client
from tests.jobs.conftest import _real_commits, acme, broker, committed, db

__all__ = ["_real_commits", "acme", "broker", "committed", "db"]


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
