"""jobs/schedules/due.py and spans.py: the due times of every kind, and the next ones."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import ScheduleError
from jobs.schedules import Schedule, due_times, in_words, moment_of, next_times, slot_of
from jobs.schedules.spans import due_in, schedule_of, without

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


READERS: dict[str, Callable[[Schedule], object]] = {
    "next times": lambda schedule: next_times(schedule, after=NOON, count=1),
    "times of a span": lambda schedule: due_in(schedule, start=NOON, end=NOON + HOUR),
    "words": in_words,
}


@pytest.mark.parametrize(
    ("reader", "schedule", "field"),
    [
        ("next times", Schedule("interval"), "interval_minutes"),
        ("next times", Schedule("interval", interval_minutes=0), "interval_minutes"),
        ("times of a span", Schedule("interval", interval_minutes=0), "interval_minutes"),
        ("next times", Schedule("seconds"), "interval_seconds"),
        ("times of a span", Schedule("seconds"), "interval_seconds"),
        ("next times", Schedule("once"), "once_at"),
        ("words", Schedule("once"), "once_at"),
        ("next times", Schedule("cron"), "cron"),
        ("next times", Schedule("cron", cron="0 0 30 2 *"), "cron"),
        ("next times", Schedule("cron", cron="* * * *"), "cron"),
        ("times of a span", Schedule("cron", cron="61 * * * *"), "cron"),
        ("words", Schedule("cron", cron="nonsense"), "cron"),
        *((name, Schedule("cron", cron="@daily", zone="Mars"), "zone") for name in READERS),
    ],
)
def test_a_broken_row_is_named(reader: str, schedule: Schedule, field: str) -> None:
    """A row that was written past all checks raises the one error that stops only this job."""
    with pytest.raises(ScheduleError) as raised:
        READERS[reader](schedule)
    assert raised.value.field == field


# --- counted and cut without being listed -----------------------------------------------------

bounds = st.tuples(st.none() | near, st.none() | near)
minutes = st.integers(-2 * 1_440, 2 * 1_440).map(lambda count: NOON + count * MINUTE)


@given(schedules, bounds, st.tuples(near, near), st.none() | near)
def test_counted_times_are_those_of_the_schedule(
    schedule: Schedule,
    bounds: tuple[datetime | None, datetime | None],
    span: tuple[datetime, datetime],
    since: datetime | None,
) -> None:
    """The same as `due_times` lists, however they are counted."""
    if schedule.kind in ("interval", "cron"):
        schedule = replace(schedule, start_at=bounds[0], end_at=bounds[1])
    start, end = span
    listed = [
        due for due in due_times(schedule, start=start, end=end) if since is None or due >= since
    ]
    assert list(due_in(schedule, start=start, end=end, since=since)) == listed


def test_seconds_lie_on_a_grid() -> None:
    """Whole multiples of the interval since 1970, wherever one begins to look."""
    schedule = Schedule(kind="seconds", interval_seconds=7)
    due = due_in(schedule, start=NOON, end=NOON + MINUTE)
    assert {int(at.timestamp()) % 7 for at in due} == {0} and len(due) in (8, 9)


@given(
    st.lists(st.tuples(minutes, minutes).map(lambda pair: (min(pair), max(pair))), max_size=4),
    st.integers(1, 300),
)
def test_what_is_in_a_span_is_left_out_and_no_row_reaches_over_it(
    spans: list[tuple[datetime, datetime]], interval: int
) -> None:
    """Rows are unbroken: between two of them lies a span."""
    schedule = Schedule(kind="interval", interval_minutes=interval)
    due = due_in(schedule, start=NOON - DAY, end=NOON + 2 * DAY)
    rows = without(due, spans)
    outside = [at for at in due if not any(first <= at <= last for first, last in spans)]
    assert [at for row in rows for at in row] == outside
    for row in rows:
        assert not any(row[0] < first and last < row[-1] for first, last in spans if first in due)
        assert list(row) == [at for at in due if row[0] <= at <= row[-1]]


@pytest.mark.parametrize(
    ("field", "facts"),
    [
        ("shard", {"schedule": "interval", "interval_minutes": 5, "phase": 1}),
        ("phase", {"schedule": "interval", "interval_minutes": 5, "shard": 1}),
        ("once_at", {"schedule": "once", "once_at": NOON + SECOND}),
        ("shard", {"schedule": "cron", "cron": "* * * * *", "smooth": True}),
    ],
)
def test_a_row_that_was_written_by_hand_is_refused(field: str, facts: dict[str, Any]) -> None:
    """The error names the field; a reader of many jobs leaves this one out."""
    names = ("interval_minutes", "interval_seconds", "once_at", "start_at", "end_at")
    empty = {"phase": None, "shard": None, "smooth": False, "cron": "", "zone": ""}
    with pytest.raises(ScheduleError, match=field):
        schedule_of({**dict.fromkeys(names), **empty, **facts})
