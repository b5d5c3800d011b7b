"""An installation in which all is well, and a superuser before it."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jobs.system.periodic import make_missing
from tests.jobs.scenes import keep_beating, living_worker


@pytest.fixture
def alive(no_ticks: None, broker: object) -> None:
    """A beat that leads, a pulse, and workers of both queues."""
    keep_beating()
    living_worker("w1@here")
    living_worker("s1@here", queues=("system",))


@pytest.fixture
def as_chief(committed: None, alive: None) -> Iterator[Client]:
    """A superuser's browser, for scenes that commit."""
    chief = User.objects.create_superuser("chief", password="chief")
    client = Client()
    client.force_login(chief)
    yield client
    chief.delete()
    make_missing()
