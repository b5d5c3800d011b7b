"""jobs/system/rollups/objectives.py: late starts are counted from histograms, by spans."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from jobs.core import barrier
from jobs.models import Owner
from jobs.system.rollups import reads
from jobs.system.rollups.histogram import GROWTH
from jobs.system.rollups.objectives import FAST, LEAST_STARTS, SLOW, Counted, Objective, objectives
from tests.jobs.system.rollups.late import BUCKETS, counted, counted_until

pytestmark = pytest.mark.django_db
AT = datetime.fromisoformat("2026-03-01T12:00:00Z")


@pytest.fixture(autouse=True)
def _long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """These scenes are of a day long ago, whose statistics do not count as late."""
    monkeypatch.setattr(reads, "LATE", timedelta.max)


def minutes(count: int) -> datetime:
    return AT - timedelta(minutes=count)


def aimed(owner: Owner, seconds: int = 1, percent: float = 95) -> None:
    owner.wait_objective_seconds, owner.wait_objective_percent = seconds, percent
    owner.save()


def found(owner: Owner) -> Objective:
    [one] = objectives([owner.pk]) or []
    return one


def at(burn: Mapping[int, float], *, percent: float = 95, starts: int = 1000) -> Objective:
    """Return an objective of which this part of the starts was late, by span."""
    counts = {span: Counted(starts, late * starts) for span, late in burn.items()}
    return Objective(owner=Owner(slug="acme"), seconds=1, percent=percent, counted=counts)


def test_late_starts_are_counted_by_span(acme: Owner) -> None:
    """A span has its minutes, and the longer ones those of the shorter."""
    aimed(acme)
    counted(acme, minutes(5), {0.5: 90, 10.0: 10})
    counted(acme, minutes(6), {10.0: 100})
    counted(acme, minutes(61), {0.5: 300})
    counted(acme, minutes(361), {10.0: 999})
    counted(acme, AT, {10.0: 999})
    counted_until(AT)
    one = found(acme)
    assert one.counted == {
        5: Counted(100, 10),
        30: Counted(200, 110),
        60: Counted(200, 110),
        360: Counted(500, 110),
    }
    assert one.burn(5) == pytest.approx(2)
    assert one.in_time(360) == pytest.approx(0.78)


def test_the_bucket_of_the_objective_counts_in_part(acme: Owner) -> None:
    """As if its waits were spread evenly: between its limits, and not at one of them."""
    aimed(acme, seconds=10)
    counted(acme, minutes(1), {10.0: 1000})
    counted_until(AT)
    low, high = GROWTH ** (BUCKETS[10.0] - 1), GROWTH ** BUCKETS[10.0]
    assert low < 10 < high
    assert found(acme).counted[5].late == pytest.approx(1000 * (high - 10) / (high - low))


def test_a_reader_of_one_owner_learns_of_no_other(acme: Owner, northwind: Owner) -> None:
    """Behind the barrier, too."""
    for owner in (acme, northwind):
        aimed(owner)
    counted_until(AT)
    barrier.raise_for([acme.pk])
    try:
        assert [one.owner for one in objectives([acme.pk, northwind.pk]) or []] == [acme]
    finally:
        barrier.lower()


@pytest.mark.parametrize(
    ("late", "percent", "pace"),
    [
        ({60: 0.72, 5: 0.72}, 95, FAST),
        ({60: 0.72, 5: 0.71}, 95, None),
        ({60: 0.71, 5: 1.0}, 95, None),
        ({360: 0.3, 30: 0.3}, 95, SLOW),
        ({360: 0.3, 30: 0.29}, 95, None),
        ({60: 0.144, 5: 0.144}, 99, FAST),
        # No burn rate of an objective of 80 % is above 5: the part of late starts counts.
        ({60: 0.73, 5: 0.73}, 80, FAST),
        ({60: 0.71, 5: 0.71}, 80, None),
    ],
)
def test_both_spans_must_burn(late: dict[int, float], percent: float, pace: object) -> None:
    """The long and the short one; the fast pace is named first."""
    assert at(late, percent=percent).burning == pace


def test_few_starts_are_no_problem() -> None:
    """One late run at night is not."""
    spans = {60: 1.0, 5: 1.0}
    assert at(spans, starts=LEAST_STARTS - 1).burning is None
    assert at(spans, starts=LEAST_STARTS).burning is FAST
