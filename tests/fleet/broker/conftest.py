"""The broker that publishes hints, over the empty Redis of the tests."""

import pytest
import redis
from celery import current_app

from fleet import Broker


@pytest.fixture
def broker(client: redis.Redis) -> Broker:
    return Broker(current_app._get_current_object())
