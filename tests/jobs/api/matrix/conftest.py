"""The rows that the tests of all operations share; each test takes back what it has changed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.jobs.api.matrix.operations import OPERATIONS
from tests.jobs.api.matrix.walls import one_wall
from tests.jobs.api.matrix.world import World, db, lasting, make_world

__all__ = ["db", "one_wall"]


@pytest.fixture(scope="package")
def whole_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """The rows, until the last test of this folder."""
    with lasting(django_db_blocker, lambda: make_world(OPERATIONS)) as made:
        yield made


@pytest.fixture
def world(db: None, whole_world: World) -> World:
    """The rows, and the callers."""
    return whole_world
