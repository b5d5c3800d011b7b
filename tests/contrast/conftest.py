"""Each scene is played by both sides: by stock Celery in `make chaos`, for it stays as it is."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from tests.contrast.installation import Contrast, contrast

Play = Callable[..., Contrast]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Set up a side; with environment variables of its own."""
    with ExitStack() as stack:

        def begin(side: str, **environ: str) -> Contrast:
            folder = tmp_path / side
            folder.mkdir()
            return stack.enter_context(contrast(side, folder, settings.REDIS_URL, **environ))

        yield begin


both = pytest.mark.parametrize("side", [pytest.param("stock", marks=pytest.mark.chaos), "fair"])
