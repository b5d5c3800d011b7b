"""jobs/owners/loads.py: a look at the fair queues has limits of time and of owners."""

import time

import pytest
from django.conf import settings

from fleet import BrokerUnavailable
from jobs.models import Owner
from jobs.owners import loads as module
from jobs.owners.loads import loads
from tests.jobs.pages.metrics.scraping import NOWHERE, redis_at
from tests.jobs.scenes import submitted
from tests.proxy import Faults, Proxy

pytestmark = pytest.mark.usefixtures("committed", "broker")


def test_owners_and_counters_are_those_of_the_queue(acme: Owner, northwind: Owner) -> None:
    """By queue, and summed over the queues."""
    submitted(acme, 3)
    submitted(northwind)
    found = loads(seconds=10)
    assert found.counters["jobs"]["ready"] == 4
    assert {name: one.backlog for name, one in found.owners.owners.items()} == {
        "acme": 3,
        "northwind": 1,
    }
    assert found.by_queue["jobs"].owners == found.owners.owners


def test_of_many_owners_some_are_looked_at(
    acme: Owner, northwind: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those that may be chosen; with none of these, none."""
    monkeypatch.setattr(module, "LOOKED_AT", 1)
    submitted(acme)
    submitted(northwind)
    assert len(loads(seconds=10).owners.owners) == 1


def test_without_redis_it_raises() -> None:
    """The caller says that it is away."""
    with redis_at(NOWHERE), pytest.raises(BrokerUnavailable):
        loads(seconds=1)


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
