"""The rows that the tests of all pages share; each test takes back what it has changed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.jobs.api.matrix.walls import one_wall
from tests.jobs.api.matrix.world import db, lasting
from tests.jobs.pages.matrix.asking import forget_messages
from tests.jobs.pages.matrix.world import World, make_world

__all__ = ["db", "one_wall"]


@pytest.fixture(scope="package")
def whole_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """The rows, until the last test of this folder."""
    with lasting(django_db_blocker, make_world) as made:
        yield made


@pytest.fixture
def world(db: None, whole_world: World) -> World:
    """The rows, and the visitors, who have sent no form yet."""
    for visitor in whole_world.visitors.values():
        forget_messages(visitor)
    return whole_world
