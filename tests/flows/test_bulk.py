"""A bulk as large as the demo's: 3,000 typed runs in the caller's transaction."""

import time
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from jobs import submit_many
from jobs.core.states import State
from tests.flows.processes import Layout, Processes
from tests.flows.world import keys_with
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

# With the short lease of most scenes, half of the runs would count as waiting for too long.
LAYOUT = Layout(lease=30)


def test_three_thousand_runs_are_submitted_at_once(
    stack: Processes, broker: redis.Redis, verdict: Any
) -> None:
    """Ids are in hand inside the transaction, hints go out after it, and no run starts twice.

    A tenth of them runs here, the rest is cancelled; the demo runs them all.
    """
    calls = [{"n": n} for n in range(3000)]
    with override_settings(FAIRSHIFT={**settings.FAIRSHIFT, "LEASE_SECONDS": LAYOUT.lease}):
        with transaction.atomic():
            began = time.perf_counter()
            submission = submit_many("tests.record", calls, owner="acme")
            took = time.perf_counter() - began
            ids = [str(run_id) for run_id in submission.runs.values_list("id", flat=True)]
            assert keys_with(broker, ids[:10]) == []
        print(f"submit_many of 3,000 took {took:.2f} s")
        assert len(ids) == 3000
        wait_for(lambda: submission.progress[State.SUCCEEDED] >= 300, seconds=60)
        submission.cancel()
        progress = submission.wait(timeout=300)
    assert set(progress.counts) <= {State.SUCCEEDED, State.CANCELLED}
    assert progress.total == 3000
    assert verdict(submission).figures["starts"] <= 3000
