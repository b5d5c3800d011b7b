"""The fake clock and the way of the hints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from celery import current_app

from tests.jobs.journeys.clock import FakeClock
from tests.jobs.journeys.network import Network


@pytest.fixture
def clock(committed: None) -> Iterator[FakeClock]:
    """A clock that stands still, on this test's connection."""
    fake = FakeClock()
    fake.install()
    yield fake
    fake.remove()


@pytest.fixture
def network(broker: redis.Redis) -> Iterator[Network]:
    """The hints that the broker is given."""
    with current_app.connection_for_write() as connected:
        yield Network(connected.default_channel)
