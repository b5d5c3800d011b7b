"""Scenes of tokens begin without a barrier."""

import pytest

from jobs.core import barrier


@pytest.fixture
def lowered(db: None) -> None:
    barrier.lower()
