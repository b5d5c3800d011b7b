"""The scene that most tests of the judge begin with."""

import pytest

from tests.judge.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """A scene in which an ordinary run of another owner has already succeeded."""
    scene = Scene()
    scene.run("stranger-1").start().succeed()
    return scene
