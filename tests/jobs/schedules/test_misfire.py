"""jobs/schedules/misfire.py: every due time is either run or inside exactly one span."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules.misfire import MisfireRule, decide

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=9), max_size=4),
    st.builds(
        MisfireRule,
        policy=st.sampled_from(["skip", "once", "all"]),
        cap=st.integers(1, 20),
        deadline_seconds=st.none() | st.floats(1, 12_000),
    ),
    st.integers(0, 200),
)
def test_nothing_is_silent_and_nothing_is_made_up(
    steps: list[list[int]], rule: MisfireRule, now: int
) -> None:
    """Each due time is a run or in exactly one span, whose count is right; there is no other."""
    minute, rows = 0, []
    for row in steps:
        minute += 10
        rows.append([at(minute := minute + step) for step in row])
    due = [moment for row in rows for moment in row]
    runs, spans = decide(rows, rule, now=at(now))
    assert runs == sorted(set(runs)) and set(runs) <= set(due)
    for moment in due:
        inside = [span for span in spans if span.first_at <= moment <= span.last_at]
        assert len(inside) == (moment not in runs)
    for span in spans:
        assert span.count == sum(span.first_at <= moment <= span.last_at for moment in due) > 0
        assert span.first_at in due and span.last_at in due
    assert len(runs) <= {"skip": 0, "once": 1}.get(rule.policy, rule.cap)
