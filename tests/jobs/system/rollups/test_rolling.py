"""jobs/system/rollups/rolling.py: each minute is counted from its rows, exactly."""

import math
import random
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from fleet import Kind
from jobs.core import sql
from jobs.models import Owner, Rollup, RollupPosition, RollupTotal
from jobs.models.rollup import OUTCOMES
from jobs.system.rollups import rolling
from jobs.system.rollups.rolling import count_minute, roll_up
from tests.jobs.system.rollups.minutes import (
    MINUTE,
    ended,
    history,
    minutes_ago,
    plain_count,
    rolled_count,
    rolled_up,
    rows,
    totals,
)

pytestmark = pytest.mark.usefixtures("committed", "broker")

OTHERS = [pytest.param(seed, marks=pytest.mark.proof) for seed in (1, 2)]

LATE = """
WITH first AS (UPDATE jobs_owner SET name = 'late' WHERE id = %s)
INSERT INTO jobs_attempt
    (run_id, token, number, outcome, admitted_at, ended_at, run_state, recorded_at)
SELECT run_id, token + 1, 2, outcome, admitted_at, ended_at, run_state, %s FROM jobs_attempt
"""


@pytest.mark.parametrize("seed", [0, *OTHERS])
def test_rollups_are_a_plain_count_of_rows(acme: Owner, northwind: Owner, seed: int) -> None:
    """By minute, owner, task, outcome and error: every attempt, and every end without one.

    Counting a minute again gives the same rows, to the last digit, and a round after the last
    minute counts none.
    """
    history([acme, northwind], random.Random(seed), count=40)
    rolled_up()
    assert rolled_count() == plain_count()
    assert rolled_count().total() > 30
    before = rows(), totals()
    for number in range(1, 9):
        count_minute(minutes_ago(number), is_final=True)
    assert (rows(), totals()) == before
    assert roll_up() == 0


@pytest.mark.parametrize("seed", [0, *OTHERS[:1]])
def test_totals_are_a_plain_count_of_rows(acme: Owner, northwind: Owner, seed: int) -> None:
    """A row for each minute in which anything ended: outcomes, worker time and histograms."""
    history([acme, northwind], random.Random(seed), count=40)
    rolled_up()
    counted: Counter[tuple[datetime, str]] = Counter()
    for (minute, _owner, _task, outcome, _error), count in plain_count().items():
        counted[minute, outcome] += count
    found = {(row["minute"], state.value): row[state] for row in totals() for state in OUTCOMES}
    assert +Counter(found) == counted
    assert [row["minute"] for row in totals()] == sorted({minute for minute, _ in counted})
    for row in totals():
        rollups = Rollup.objects.filter(minute=row["minute"])
        seconds = math.fsum(rollup.worker_seconds for rollup in rollups)
        assert row["worker_seconds"] == pytest.approx(seconds)
        for name in ("wait", "run"):
            assert _histogram([Rollup(**_times(row))], name) == _histogram(rollups, name)


def _times(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name.endswith(("_buckets", "_counts"))}


def _histogram(rollups: Iterable[Rollup], name: str) -> Counter[int]:
    found: Counter[int] = Counter()
    for rollup in rollups:
        numbers, counts = getattr(rollup, f"{name}_buckets"), getattr(rollup, f"{name}_counts")
        assert numbers == sorted(numbers)
        found.update(dict(zip(numbers, counts, strict=True)))
    return found


def test_a_late_commit_is_counted_once(acme: Owner) -> None:
    """The minute is counted meanwhile, and is final when the transaction has ended."""
    at = minutes_ago(4)
    ended(acme, at)
    late = connection.copy()
    try:
        late.set_autocommit(False)
        late.cursor().execute(LATE, [acme.pk, at])
        rolled_up()
        assert rolled_count().total() == 1
        assert RollupPosition.objects.get().final_until == at
        late.commit()
    finally:
        late.close()
    rolled_up()
    assert rolled_count() == Counter({(at, acme.pk, "tests.add", "succeeded", ""): 2})
    assert [row["succeeded"] for row in totals()] == [2]
    assert RollupPosition.objects.get().final_until > at
    assert roll_up() == 0


def test_a_failed_run_is_counted_once(acme: Owner) -> None:
    """With its attempt, in the same minute or another one; and a run that was given back is not."""
    at = minutes_ago(3)
    ended(acme, at, Kind.FAILED, error_type="OSError")
    run = ended(acme, at, Kind.FAILED, error_type="OSError")
    sql.query("UPDATE jobs_run SET ended_at = %s WHERE id = %s", [at + MINUTE, run.id])
    sql.query("UPDATE jobs_attempt SET ended_at = %s WHERE run_id = %s", [at + MINUTE, run.id])
    ended(acme, at, Kind.GIVEN_BACK)
    rolled_up()
    assert rolled_count() == Counter({(at, acme.pk, "tests.add", "failed", "OSError"): 2})


def test_rounds_go_on_where_the_last_one_ended(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage, a round counts only some minutes; one that fails is repeated."""
    monkeypatch.setattr(rolling, "MOST_MINUTES", 2)
    for number in (6, 4, 2):
        ended(acme, minutes_ago(number))
    counted = [roll_up() for _ in range(6)]
    assert sum(counted) >= 6
    assert max(counted) == 2
    assert rolled_count() == plain_count()


def test_after_a_restore_the_rounds_go_on(acme: Owner) -> None:
    """Ids of transactions of the old server mean nothing on the new one."""
    at = minutes_ago(3)
    ended(acme, at)
    roll_up()
    assert RollupPosition.objects.update(boundary_xid=2**62) == 1
    rolled_up()
    assert rolled_count().total() == 1


def test_old_rollups_are_deleted(acme: Owner, settings: Settings) -> None:
    """After ROLLUP_DAYS."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ROLLUP_DAYS": 1}
    ended(acme, minutes_ago(2))
    rolled_up()
    [kept], [total] = rows(), totals()
    for age in (timedelta(hours=23), timedelta(hours=25)):
        Rollup.objects.create(**{**kept, "minute": kept["minute"] - age})
        RollupTotal.objects.create(**{**total, "minute": total["minute"] - age})
    roll_up()
    assert len(rows()) == len(totals()) == 2
