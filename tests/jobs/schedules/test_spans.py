"""jobs/schedules/spans.py: due times are counted and cut without being listed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import ScheduleError
from jobs.schedules import Schedule, due_times
from jobs.schedules.spans import due_in, schedule_of, without

START = datetime(2026, 3, 1, tzinfo=UTC)
moments = st.integers(0, 3 * 86_400 * 2).map(lambda n: START + timedelta(seconds=n / 2))
schedules = st.one_of(
    st.builds(
        Schedule,
        kind=st.just("interval"),
        interval_minutes=st.integers(1, 1500),
        phase=st.integers(0, 5),
        shard=st.integers(0, 119),
        start_at=st.none() | moments,
        end_at=st.none() | moments,
    ),
    st.builds(
        Schedule,
        kind=st.just("cron"),
        cron=st.sampled_from(["* * * * *", "*/7 3-9 * * *", "30 2 * * 1", "@daily"]),
        zone=st.sampled_from(["", "Europe/Berlin"]),
        start_at=st.none() | moments,
        end_at=st.none() | moments,
    ),
    st.builds(Schedule, kind=st.just("once"), once_at=moments),
    st.just(Schedule(kind="manual")),
)


@given(schedules, moments, moments, st.none() | moments)
def test_they_are_those_of_the_schedule(
    schedule: Schedule, start: datetime, end: datetime, since: datetime | None
) -> None:
    """The same as `schedules.due_times` lists, however they are counted."""
    if schedule.kind == "interval" and schedule.phase >= (schedule.interval_minutes or 0):
        return
    listed = [
        due for due in due_times(schedule, start=start, end=end) if since is None or due >= since
    ]
    assert list(due_in(schedule, start=start, end=end, since=since)) == listed


def test_seconds_lie_on_a_grid() -> None:
    """Whole multiples of the interval since 1970, wherever one begins to look."""
    schedule = Schedule(kind="seconds", interval_seconds=7)
    due = due_in(schedule, start=START, end=START + timedelta(minutes=1))
    assert {int(at.timestamp()) % 7 for at in due} == {0} and len(due) in (8, 9)


@given(
    st.lists(st.tuples(moments, moments).map(lambda pair: (min(pair), max(pair))), max_size=4),
    st.integers(1, 300),
)
def test_what_is_in_a_span_is_left_out_and_no_row_reaches_over_it(
    spans: list[tuple[datetime, datetime]], minutes: int
) -> None:
    """Rows are unbroken: between two of them lies a span."""
    schedule = Schedule(kind="interval", interval_minutes=minutes)
    due = due_in(schedule, start=START, end=START + timedelta(days=3))
    rows = without(due, spans)
    outside = [at for at in due if not any(first <= at <= last for first, last in spans)]
    assert [at for row in rows for at in row] == outside
    for row in rows:
        assert not any(row[0] < first and last < row[-1] for first, last in spans if first in due)
        assert list(row) == [at for at in due if row[0] <= at <= row[-1]]


def test_a_row_that_was_written_by_hand_is_refused() -> None:
    """By field; who reads many jobs leaves it out."""
    for broken in (
        Schedule(kind="interval", interval_minutes=0),
        Schedule(kind="seconds"),
        Schedule(kind="cron", cron="61 * * * *"),
        Schedule(kind="cron", cron="* * * * *", zone="Mars/Olympus"),
    ):
        with pytest.raises(ScheduleError):
            due_in(broken, start=START, end=START + timedelta(hours=1))
    columns: dict[str, Any] = {
        **dict.fromkeys(("interval_minutes", "interval_seconds", "once_at", "start_at", "end_at")),
        "phase": None,
        "shard": None,
        "smooth": False,
        "cron": "",
        "zone": "",
    }
    for field, facts in {
        "shard": {"schedule": "interval", "interval_minutes": 5, "phase": 1},
        "phase": {"schedule": "interval", "interval_minutes": 5, "shard": 1},
        "once_at": {"schedule": "once", "once_at": START + timedelta(seconds=1)},
    }.items():
        with pytest.raises(ScheduleError, match=field):
            schedule_of({**columns, **facts})
    with pytest.raises(ScheduleError, match="shard"):
        schedule_of({**columns, "schedule": "cron", "cron": "* * * * *", "smooth": True})
