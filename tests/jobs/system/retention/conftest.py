"""An archive; old partitions that a scene makes are removed after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.models import HistoryPart, HistoryRound
from tests.jobs.system.retention.old import drop_old_tables


@pytest.fixture
def history(committed: None) -> Iterator[None]:
    """Real commits; nothing old before and after."""
    drop_old_tables()
    yield
    drop_old_tables()
    HistoryPart.objects.all().delete()
    HistoryRound.objects.all().delete()


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    """The folder of an archive."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ARCHIVE_FOLDER": str(tmp_path)}
    return tmp_path
