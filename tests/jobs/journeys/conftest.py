"""The fake clock and the way of the hints."""

from collections.abc import Iterator

import pytest
import redis
from celery import current_app

from tests.jobs.journeys.clock import FakeClock
from tests.jobs.journeys.network import Network


@pytest.fixture
def clock(committed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeClock]:
    """A clock that stands still, on this test's connection."""
    # The tables that it hides are whole here: runs of every day are in the same one.
    monkeypatch.setattr("jobs.core.prepared.partition_of", lambda _moment: "jobs_run")
    fake = FakeClock()
    fake.install()
    yield fake
    fake.remove()


@pytest.fixture
def network(broker: redis.Redis) -> Iterator[Network]:
    """The hints that the broker is given."""
    with current_app.connection_for_write() as connected:
        yield Network(connected.default_channel)
