"""jobs/system/rollups/metric_totals.py: counters to which each final minute is added once."""

import random
from collections import Counter
from datetime import timedelta

import pytest
from pytest_django import Settings

from jobs.core import sql
from jobs.core.ids import first_id_of
from jobs.models import MetricOwner, Missed, Owner
from jobs.system.rollups.metric_totals import OTHER, Totals, missed_name, read
from jobs.system.rollups.rolling import count_minute
from tests.jobs.admin.conftest import stored_job
from tests.jobs.scenes import open_transaction
from tests.jobs.system.rollups.minutes import (
    MINUTE,
    ended,
    history,
    minutes_ago,
    plain_count,
    rolled_up,
)
from tests.jobs.system.rollups.test_rolling import LATE

pytestmark = pytest.mark.usefixtures("committed", "broker")

QUEUE = "jobs"


def of(found: Totals, owner: str) -> dict[str, float]:
    """Return the totals of an owner in the queue of the jobs; none: an empty dict."""
    return dict(found.each[owner, QUEUE].values) if (owner, QUEUE) in found.each else {}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.proof)])
def test_totals_are_a_plain_count_of_rows(acme: Owner, northwind: Owner, seed: int) -> None:
    """By owner and outcome, and in sum."""
    history([acme, northwind], random.Random(seed), count=40)
    rolled_up()
    slugs = {acme.pk: "acme", northwind.pk: "northwind"}
    counted: Counter[tuple[str, str]] = Counter()
    for (_minute, owner_id, _task, outcome, _error), count in plain_count().items():
        counted[slugs[owner_id], outcome] += count
    found = read()
    for (owner, outcome), count in counted.items():
        assert of(found, owner)[outcome] == count
    for outcome in {outcome for _owner, outcome in counted}:
        both = sum(count for (_, name), count in counted.items() if name == outcome)
        assert found.all[outcome] == both


def test_a_minute_is_added_once_and_when_it_is_final(acme: Owner) -> None:
    """With what was committed late: a total that was added too early could not rise any more.

    Counting it again, also as final, adds nothing.
    """
    at = minutes_ago(4)
    ended(acme, at)
    with open_transaction(LATE, acme.pk, at):
        rolled_up()
        assert of(read(), "acme") == {}
    rolled_up()
    for is_final in (True, False):
        count_minute(at, is_final=is_final)
    assert of(read(), "acme")["succeeded"] == 1


def test_runs_are_counted_as_submitted_in_the_minute_of_their_ids(acme: Owner) -> None:
    """By owner and queue; those of other minutes are not."""
    # The last one's minute has not ended, even if one ends meanwhile.
    for number, minute in enumerate((3, 3, 3, -2)):
        run = ended(acme, minutes_ago(3))
        moved = first_id_of(minutes_ago(minute)).int + number
        sql.query(
            "UPDATE jobs_run SET id = (lpad(to_hex(%s::bigint), 16, '0') || "
            "lpad(to_hex(%s::bigint), 16, '0'))::uuid WHERE id = %s",
            [moved >> 64, moved & (1 << 62) - 1, run.id],
        )
    rolled_up()
    assert of(read(), "acme")["submitted"] == 3
    assert read().all["submitted"] == 3


def test_the_owners_with_most_load_are_named(
    acme: Owner, northwind: Owner, stranger: Owner, settings: Settings
) -> None:
    """Others are counted together; a sum of them never falls when one of them gets a name."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "METRICS_NAMES": 1}
    at = minutes_ago(5)
    for owner in (acme, acme, northwind, stranger):
        ended(owner, at)
    for _ in range(5):
        ended(northwind, at + 2 * MINUTE)
    rolled_up()
    found = read()
    assert of(found, "northwind")["succeeded"] == 5
    assert of(found, OTHER)["succeeded"] == 2
    assert of(found, "acme") == {}
    assert found.all["succeeded"] == 9
    assert [row.owner_id for row in MetricOwner.objects.all()] == [northwind.pk]


def test_missed_spans_are_counted_by_reason(acme: Owner, no_ticks: None) -> None:
    """In the minute in which they were recorded."""
    job, at = stored_job(acme, "hourly"), minutes_ago(3)
    for number, reason in enumerate(("outage", "outage", "window")):
        due = at + timedelta(seconds=number)
        facts = {"first_at": due, "last_at": due, "count": 7, "reason": reason}
        row = Missed.objects.create(job=job, owner=acme, **facts)
        Missed.objects.filter(pk=row.pk).update(created_at=due)
    ended(acme, at - MINUTE)
    rolled_up()
    assert read().all[missed_name("outage")] == 2
    assert read().all[missed_name("window")] == 1
    assert read().all[missed_name("cap")] == 0
