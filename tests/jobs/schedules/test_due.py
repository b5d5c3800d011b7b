"""jobs/schedules/due.py: the due times of every kind, and the next ones."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import ScheduleError
from jobs.schedules import Schedule, due_times, moment_of, next_times, slot_of

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
near = st.timedeltas(-2 * DAY, 2 * DAY).map(lambda span: NOON + span)


@st.composite
def interval_schedules(draw: st.DrawFn) -> Schedule:
    interval = draw(st.integers(1, 3000))
    return Schedule(
        "interval",
        interval_minutes=interval,
        phase=draw(st.integers(0, interval - 1)),
        shard=draw(st.integers(0, 119)),
    )


schedules = (
    interval_schedules()
    | st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 0 * 6 *"]).map(
        lambda cron: Schedule("cron", cron=cron, zone="Europe/Berlin")
    )
    | near.map(lambda moment: Schedule("once", once_at=moment))
    | st.integers(100, 86_400).map(lambda every: Schedule("seconds", interval_seconds=every))
)


@given(interval_schedules(), near, st.integers(0, 30_000))
def test_an_interval_is_due_by_its_phase_and_shard(
    schedule: Schedule, start: datetime, slots: int
) -> None:
    """Exactly in the minutes m with (m - phase) % N == 0, at the instant of the shard's slot."""
    first = slot_of(start - timedelta(microseconds=1)) + 1
    wanted = [
        moment_of(slot)
        for slot in range(first, first + slots)
        if (slot // 120 - schedule.phase) % (schedule.interval_minutes or 1) == 0
        and slot % 120 == schedule.shard
    ]
    end = moment_of(first + slots)
    assert list(due_times(schedule, start=start, end=end)) == wanted


@given(schedules, near, near)
def test_spans_put_together_have_all_times_once(
    schedule: Schedule, one: datetime, other: datetime
) -> None:
    """A time at the border of two spans belongs to the second; times rise."""
    start, middle, end = NOON - 3 * DAY, *sorted([one, other])
    parts = [
        *due_times(schedule, start=start, end=middle),
        *due_times(schedule, start=middle, end=end),
    ]
    assert parts == list(due_times(schedule, start=start, end=end))
    assert all(before < after for before, after in pairwise(parts))


@given(schedules, near, near)
def test_start_and_end_of_a_schedule_are_included(
    schedule: Schedule, one: datetime, other: datetime
) -> None:
    """What is due from `start_at` until `end_at` counts, at both of them as well."""
    low, high = sorted([one, other])
    span = {"start": NOON - 3 * DAY, "end": NOON + 3 * DAY}
    free = list(due_times(schedule, **span))
    for start_at, end_at in ((low, high), (free[0], free[-1]) if free else (low, high)):
        bounded = replace(schedule, start_at=start_at, end_at=end_at)
        wanted = [moment for moment in free if start_at <= moment <= end_at]
        assert list(due_times(bounded, **span)) == wanted


@given(schedules, near, st.integers(0, 12))
def test_next_times_are_the_first_that_come(
    schedule: Schedule, after: datetime, count: int
) -> None:
    """Later than `after`, as many as are asked for, fewer when a schedule ends."""
    found = next_times(schedule, after=after, count=count)
    if found:
        span = due_times(schedule, start=after, end=found[-1] + SECOND / 10)
        assert found == [moment for moment in span if moment > after]
    assert len(found) == count or schedule.kind == "once"


def test_next_times_give_up_after_eight_years() -> None:
    """From one 29th of February to the next it is eight years at the most; no more."""
    leap = Schedule("cron", cron="0 0 29 2 *")
    before = datetime(2096, 2, 29, tzinfo=UTC)
    assert next_times(leap, after=before, count=5) == [datetime(2104, 2, 29, tzinfo=UTC)]
    rare = Schedule("cron", cron="0 0 29 2 */7")
    assert next_times(rare, after=datetime(2033, 1, 1, tzinfo=UTC), count=1) == []


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (Schedule("interval"), "interval_minutes"),
        (Schedule("interval", interval_minutes=0), "interval_minutes"),
        (Schedule("seconds"), "interval_seconds"),
        (Schedule("once"), "once_at"),
        (Schedule("cron"), "cron"),
        (Schedule("cron", cron="0 0 * * *", zone="Mars"), "zone"),
    ],
)
def test_a_broken_row_is_named(schedule: Schedule, field: str) -> None:
    """What somebody wrote past all checks raises the one error that stops only this job."""
    with pytest.raises(ScheduleError) as raised:
        next_times(schedule, after=NOON, count=1)
    assert raised.value.field == field
