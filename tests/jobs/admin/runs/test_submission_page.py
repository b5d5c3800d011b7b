"""jobs/admin/runs/submission_page.py: how far a submission is, how fast, and its failed runs once
more.
"""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from fleet import Kind
from jobs.models import Owner, Submission
from jobs.runs.reads.pace import Pace
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def submission(acme: Owner) -> Submission:
    """Five runs: two have failed, one has succeeded, two wait."""
    runs = submitted(acme, 5, max_attempts=1)
    worker = living_worker()
    for run, kind in zip(runs, (Kind.FAILED, Kind.FAILED, Kind.SUCCEEDED), strict=False):
        admission = admitted(worker, run)
        recorded(admission, Kind.STARTED)
        recorded(admission, kind)
    return Submission.objects.get()


def test_the_page_says_how_much_how_fast_and_how_long(
    as_root: Client, submission: Submission
) -> None:
    """In numbers: of five runs three have ended."""
    url = reverse("admin:jobs_submission_change", args=[submission.pk])
    page = as_root.get(url).content.decode()
    assert "60 % (3 / 5)" in page
    assert "so far" in page


@pytest.mark.parametrize(
    ("ended", "seconds", "percentage", "rate"),
    [
        (2_999, 60, "99 %", "50.0 / s"),
        (3_000, 3_000, "100 %", "1.0 / s"),
        (30, 600, "1 %", "3.0 / min"),
        (1, 7_200, "0 %", "0.5 / h"),
        (0, 60, "0 %", ""),
    ],
)
def test_a_pace_has_a_unit_that_can_be_read(
    ended: int, seconds: int, percentage: str, rate: str
) -> None:
    """100 % is said of all only."""
    pace = Pace(ended, 3_000, NOW - timedelta(seconds=seconds), NOW)
    assert (pace.percentage, pace.rate) == (percentage, rate)
