"""jobs/forecast/soon.py: what opens next, for how many runs, and whether they fit."""

import pytest

from jobs.core.sql import now
from jobs.forecast import soon
from jobs.forecast.capacity import RunTimes
from jobs.forecast.soon import opens_next
from jobs.models import Owner
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.windows_world import calendar_of, window


def test_the_next_openings_have_the_runs_that_wait_for_them(
    acme: Owner, northwind: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line an owner and opening, the earliest first; others' runs are not counted."""
    window(calendar_of(acme, "nights"), opens_in=7_200, seconds=3_600)
    window(calendar_of(northwind, "lunch"), opens_in=3_600, seconds=600)
    living_worker()
    submitted(acme, 5)
    submitted(northwind, 2)
    found = opens_next(None, now=now())
    assert found is not None
    assert [(one.owner.slug, one.calendar, one.count) for one in found] == [
        ("northwind", "lunch", 2),
        ("acme", "nights", 5),
    ]
    assert all(one.left_over is None for one in found), "no run time is known"
    assert [one.owner for one in opens_next([acme.pk], now=now()) or ()] == [acme]
    monkeypatch.setattr(soon, "run_times_of", lambda *_, **__: RunTimes(seconds=3_601))
    assert {one.left_over for one in opens_next(None, now=now(), busy=None) or ()} == {None}
    # Four slots, shared by two owners of weights 3 and 1.
    assert [one.left_over for one in opens_next(None, now=now()) or ()] == [1, 2]
