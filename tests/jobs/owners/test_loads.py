"""jobs/owners/loads.py: a look at the fair queues has limits of time and of owners."""

import time

import pytest
from django.conf import settings

from fleet import BrokerUnavailable
from jobs.models import Owner
from jobs.owners import loads as module
from jobs.owners.loads import loads
from tests.jobs.pages.metrics.scraping import redis_at
from tests.jobs.scenes import submitted
from tests.proxy import Faults, Proxy

pytestmark = pytest.mark.usefixtures("committed", "broker")


def test_of_many_owners_some_are_looked_at(
    acme: Owner, northwind: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those that may be chosen; with none of these, none."""
    monkeypatch.setattr(module, "LOOKED_AT", 1)
    submitted(acme)
    submitted(northwind)
    assert len(loads(seconds=10).owners.owners) == 1


def test_a_slow_redis_is_given_up(acme: Owner) -> None:
    """Between two questions, if it answers each of them late."""
    submitted(acme)
    with Proxy(settings.REDIS_URL) as proxy, redis_at(proxy.url):
        loads(seconds=10)
        proxy.faults = Faults(delay_seconds=0.3)
        began = time.monotonic()
        with pytest.raises(BrokerUnavailable):
            loads(seconds=0.2)
    assert time.monotonic() - began < 5
