"""Scenes that stock Celery and Fairshift both play: `make contrast`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from tests.contrast.installation import Contrast, contrast

Play = Callable[..., Contrast]
HERE = Path(__file__).parent


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Set up a side; with environment variables of its own."""
    with ExitStack() as stack:

        def begin(side: str, **environ: str) -> Contrast:
            folder = tmp_path / side
            folder.mkdir()
            return stack.enter_context(contrast(side, folder, settings.REDIS_URL, **environ))

        yield begin


both = pytest.mark.parametrize("side", ["stock", "fair"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all scenes of this folder that `make proof` and `make chaos` do not play."""
    for item in items:
        is_played = item.get_closest_marker("proof") or item.get_closest_marker("chaos")
        if item.path.parent == HERE and not is_played:
            item.add_marker("contrast")
