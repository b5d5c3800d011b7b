"""jobs/schedules/misfire.py: every due time is either run or inside exactly one span."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules.misfire import MisfireRule, MissedSpan, decide

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def told(rule: MisfireRule, *rows: Sequence[int], now: float = 100) -> tuple[list[int], list[str]]:
    """Decide about minutes after noon; spans as texts."""
    runs, spans = decide([[at(minute) for minute in row] for row in rows], rule, now=at(now))
    return [_minute(run) for run in runs], [_text(span) for span in spans]


def _minute(moment: datetime) -> int:
    return round((moment - NOON).total_seconds() / 60)


def _text(span: MissedSpan) -> str:
    return f"{_minute(span.first_at)}-{_minute(span.last_at)}: {span.count} {span.reason}"


@pytest.mark.parametrize(
    ("rule", "runs", "spans"),
    [
        (MisfireRule(policy="skip", cap=100), [], ["1-5: 5 outage"]),
        (MisfireRule(policy="once", cap=100), [5], ["1-4: 4 outage"]),
        (MisfireRule(policy="all", cap=100), [1, 2, 3, 4, 5], []),
        (MisfireRule(policy="all", cap=2), [4, 5], ["1-3: 3 cap"]),
        (
            MisfireRule(policy="all", cap=2, deadline_seconds=98 * 60),
            [4, 5],
            ["1-1: 1 deadline", "2-3: 2 cap"],
        ),
        (
            MisfireRule(policy="all", cap=9, deadline_seconds=97 * 60),
            [3, 4, 5],
            ["1-2: 2 deadline"],
        ),
        (MisfireRule(policy="once", cap=9, deadline_seconds=60), [], ["1-5: 5 deadline"]),
        (MisfireRule(policy="skip", cap=9, deadline_seconds=60), [], ["1-5: 5 outage"]),
    ],
)
def test_a_policy_says_what_is_run(rule: MisfireRule, runs: list[int], spans: list[str]) -> None:
    """Skip none, once the latest, all the latest so many; none that is too late."""
    assert told(rule, [1, 2, 3, 4, 5]) == (runs, spans)


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
