"""A pytest plugin for both sides: limits the time of a test and, on the fair side, sets it up."""

from __future__ import annotations

import os
from typing import Any

import pytest
from celery.contrib.testing.worker import test_worker_starting

if os.environ["CELERY_SUITE_SIDE"] == "fair":
    import fleet
    from fleet.steps.fair_queues import FairQueues

    fleet.use_fair_transport()

    @test_worker_starting.connect(weak=False)
    def _add_step(sender: Any, **_signal: Any) -> None:
        """Give the suite's worker the boot step that `celery worker` gets from `celeryd_init`."""
        sender.steps["worker"].add(FairQueues)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shorten Celery's own time limits; a test that sets a shorter one keeps it."""
    longest = config.getoption("timeout")
    for item in items:
        own = item.get_closest_marker("timeout")
        seconds = (own.kwargs.get("timeout") or own.args[0]) if own else longest
        item.add_marker(pytest.mark.timeout(min(seconds, longest)), append=False)
