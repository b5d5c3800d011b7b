"""The number of series is bounded, whatever the number of owners."""

from typing import Any

import pytest

from fleet.keys import queue_key
from jobs.core import sql
from jobs.models import Owner
from jobs.system.rollups.rolling import roll_up
from tests.flows.world import broker_client
from tests.jobs.pages.metrics.scraping import series, value
from tests.jobs.system.rollups.minutes import ended, minutes_ago, rolled_up

pytestmark = pytest.mark.usefixtures("committed", "broker")

OWNERS = 100_000
NAMES = 20
PER_OWNER = 60
"""Series of an owner in one queue at most: gauges, counters, and two histograms."""
FIRST_KEY = 10_000_000
PUT_IN = """
WITH owners AS (
    INSERT INTO jobs_owner (id, slug, name, weight, zone, paused_reason)
    SELECT %(first)s + n, 'o' || n, '', 1, 'UTC', '' FROM generate_series(1, %(count)s) AS n
    RETURNING id
), runs AS (
    INSERT INTO jobs_run
        (id, owner_id, task, queue, state, payload, max_attempts, ended_at, history)
    SELECT (lpad(to_hex((extract(epoch FROM %(at)s::timestamptz) * 1000)::bigint), 12, '0')
            || '70008000' || lpad(to_hex(id), 12, '0'))::uuid,
        id, 'tests.add', 'jobs', 'succeeded', '', 1, %(at)s, '[]' FROM owners
    RETURNING id
)
INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at, ended_at,
    queued_at, run_state, recorded_at)
SELECT id, 1, 1, 'succeeded', %(at)s, %(at)s, %(at)s, %(at)s, 'succeeded', %(at)s FROM runs
"""


@pytest.fixture
def few_names(settings: Any) -> None:
    """Let metrics name 20 owners."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "METRICS_NAMES": NAMES}


@pytest.mark.usefixtures("few_names")
@pytest.mark.proof
def test_100_000_owners_have_as_many_series_as_few(acme: Owner) -> None:
    """Each has had a run; the busiest are named, and no run is left out."""
    at = minutes_ago(3)
    for _ in range(3):
        ended(acme, at)
    sql.query(PUT_IN, {"first": FIRST_KEY, "count": OWNERS, "at": at})
    rolled_up()
    found = series()
    assert value(found, "outcomes_total", outcome="succeeded") == OWNERS + 3
    counted = {
        labels: number for (name, labels), number in found.items() if name == "owner_started_total"
    }
    assert len(counted) == NAMES + 1
    assert sum(counted.values()) == OWNERS + 3
    assert value(found, "owner_started_total", owner="acme", queue="jobs") == 3
    assert len(found) < (NAMES + 1) * PER_OWNER + 100
    roll_up()  # whether or not another minute has passed
    assert value(series(), "outcomes_total", outcome="succeeded") == OWNERS + 3
    # A DELETE would look eleven times for what refers to each owner.
    sql.query("TRUNCATE jobs_owner CASCADE")


@pytest.mark.usefixtures("few_names")
def test_names_in_redis_are_no_labels_of_their_own(acme: Owner) -> None:
    """A counter of Redis with an unknown name, which anyone there could write, is not exported."""
    with broker_client() as client:
        client.hset(queue_key("jobs", "counters"), "x" * 50, 7)
    assert not [labels for (_, labels) in series() if any("xxx" in word for _, word in labels)]
