"""jobs/forecast/replay/rolled.py: reading statistics is bounded by time and by attempts."""

import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.forecast.replay.changes import Changes
from jobs.forecast.replay.load import OutOfTime
from jobs.forecast.replay.plan import make_plan
from jobs.forecast.replay.rolled import MOST_ATTEMPTS
from jobs.models import Attempt, Owner
from jobs.system.rollups.histogram import GROWTH
from tests.jobs.system.rollups.minutes import ended, minutes_ago, rolled_up

pytestmark = pytest.mark.django_db


@pytest.fixture
def span(acme: Owner) -> dict[str, datetime]:
    """A span of which only statistics are left: two minutes with an attempt each."""
    for minute in (4, 3):
        ended(acme, minutes_ago(minute))
    rolled_up()
    Attempt.objects.all().delete()
    end = minutes_ago(1)
    return {"start": end - timedelta(minutes=9), "end": end}


def grow(count: int) -> None:
    """Let each minute of the statistics have so many attempts."""
    sql.query(
        "UPDATE jobs_rollup SET wait_counts = ARRAY[%(count)s], run_counts = ARRAY[%(count)s]",
        {"count": count},
    )


def plan(span: dict[str, datetime], **facts: Any) -> Any:
    return make_plan(**span, changes=Changes(), growth=GROWTH, most_runs=1_000, **facts)


def test_a_plan_gives_up_in_time_while_it_reads_statistics(span: dict[str, datetime]) -> None:
    """The time of a plan is for reading, too: two calls are too few for the replay to look."""
    assert plan(span, seconds=60.0).runs == 2
    with pytest.raises(OutOfTime):
        plan(span, seconds=-1.0)


def test_a_span_with_too_many_attempts_is_refused_at_once(span: dict[str, datetime]) -> None:
    """The refusal names the field and the limit, and nothing is read."""
    grow(MOST_ATTEMPTS // 2 + 1)
    began = time.monotonic()
    with pytest.raises(OptionError) as refused:
        plan(span)
    assert refused.value.option == "to"
    assert f"{MOST_ATTEMPTS:,} at most" in refused.value.problem
    assert time.monotonic() - began < 10
