"""jobs/catalog/retry_policy.py: a run's own policy first, the settings for what it leaves open."""

from typing import Any

import pytest
from pytest_django import Settings

from jobs.catalog.retry_policy import delay_after


@pytest.fixture(autouse=True)
def steady(settings: Settings) -> None:
    settings.FAIRSHIFT = {"BACKOFF_SECONDS": 8.0, "BACKOFF_CAP_SECONDS": 20.0}


@pytest.mark.parametrize(
    ("policy", "attempt", "low", "high"),
    [
        ({}, 1, 4, 8),
        ({}, 9, 10, 20),
        ({"backoff_seconds": 100.0}, 1, 10, 20),
        ({"backoff_seconds": 100.0, "backoff_cap_seconds": 60.0}, 1, 30, 60),
        ({"backoff_seconds": 0.0}, 1, 0, 0),
    ],
)
def test_the_settings_complete_the_policy(
    policy: dict[str, Any], attempt: int, low: float, high: float
) -> None:
    """With jitter, the delay lies in the upper half of what the back-off says."""
    delay = delay_after({"max_attempts": 10, **policy}, attempt, ["ValueError"], None)
    assert delay is not None
    assert low <= delay <= high
