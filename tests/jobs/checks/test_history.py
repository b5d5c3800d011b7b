"""jobs/checks/history.py: an archive that cannot be written is named, and rows that stay for it."""

from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.checks.history import check_history
from jobs.core.sql import now
from jobs.models import HistoryRound

pytestmark = pytest.mark.django_db


def test_a_folder_that_is_missing_is_named(settings: Settings, tmp_path: Path) -> None:
    """Before old runs stay for it."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ARCHIVE_FOLDER": str(tmp_path / "gone")}
    [found] = check_history()
    assert found.id == "fairshift.W114" and str(tmp_path / "gone") in found.msg


def test_rows_that_stay_are_said_with_the_reason() -> None:
    """Since when, and what the last round met."""
    HistoryRound.objects.create(began_at=now(), problem="The disk is full.", problem_since=now())
    [found] = check_history()
    assert found.id == "fairshift.W113" and found.msg.endswith(" UTC: The disk is full.")
