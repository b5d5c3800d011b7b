"""Old partitions that a scene makes are removed after it."""

from collections.abc import Iterator

import pytest

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
