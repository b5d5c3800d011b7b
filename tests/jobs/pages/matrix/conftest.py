"""The rows that the tests of all pages share; each test takes back what it has changed."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from tests.jobs.api.matrix.walls import one_wall
from tests.jobs.api.matrix.world import taken_back
from tests.jobs.pages.matrix.asking import forget_messages
from tests.jobs.pages.matrix.world import World, make_world

__all__ = ["one_wall"]


@pytest.fixture(scope="package")
def whole_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """The rows, in a transaction that is rolled back after the last test of this folder."""
    tasks = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}
    with django_db_blocker.unblock(), taken_back(), override_settings(FAIRSHIFT=tasks):
        yield make_world()


@pytest.fixture
def db(whole_world: World) -> Iterator[None]:
    """A part of that transaction that is rolled back: each test finds the same rows."""
    with taken_back():
        yield


@pytest.fixture
def world(db: None, whole_world: World) -> World:
    """The rows, and the visitors, who have sent no form yet."""
    for visitor in whole_world.visitors.values():
        forget_messages(visitor)
    return whole_world
