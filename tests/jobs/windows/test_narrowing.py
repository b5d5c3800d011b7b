"""jobs/windows/narrowing.py: which changes of a window open nothing that was closed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.windows import DecisionFact, Effect, Entry, Span, approved_spans, checked, occurrences
from jobs.windows.narrowing import only_narrows
from jobs.windows.spans import union, without
from tests.jobs.schedules.clocks import ZONES, changes
from tests.jobs.windows.calendars import some_calendars

HOUR, DAY, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
WALL = datetime.fromisoformat
MOMENT = datetime(2026, 6, 1, tzinfo=UTC)
NIGHTS = Entry(Effect.WINDOW, WALL("2026-01-03 22:00"), 8 * HOUR, "Europe/Berlin", "FREQ=DAILY")
HOURLY = replace(NIGHTS, duration=HOUR / 2, rule="FREQ=HOURLY;INTERVAL=2")
ONCE = replace(NIGHTS, rule="")
DATES = (WALL("2026-01-05 22:00"), WALL("2026-01-06 22:00"))
LATER = tuple(wall + HOUR for wall in DATES)
AN_HOUR_LATER = {"starts": WALL("2026-01-03 23:00"), "duration": 7 * HOUR}
"""It starts an hour later, and ends when it did."""


def nightly(end: str) -> Entry:
    """Return the nights by a rule with this end."""
    return replace(NIGHTS, rule=f"FREQ=DAILY;{end}")


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        (NIGHTS, {"duration": 7 * HOUR}),
        (HOURLY, {"duration": HOUR / 4}),
        (NIGHTS, AN_HOUR_LATER),
        (ONCE, {"starts": WALL("2026-01-04 01:00"), "duration": 5 * HOUR}),
        (NIGHTS, {"valid_until": MOMENT}),
        (NIGHTS, {"valid_from": MOMENT}),
        (replace(NIGHTS, valid_until=MOMENT), {"valid_until": MOMENT - DAY}),
        (replace(NIGHTS, valid_from=MOMENT), {"valid_from": MOMENT + DAY}),
        (NIGHTS, {"excluded": DATES}),
        (replace(NIGHTS, added=DATES), {"added": DATES[:1]}),
        (NIGHTS, {"rule": "FREQ=DAILY;COUNT=5"}),
        (NIGHTS, {"rule": "FREQ=DAILY;UNTIL=20260601T000000Z"}),
        (nightly("COUNT=5"), {"rule": "FREQ=DAILY;COUNT=4"}),
        (nightly("UNTIL=20260601"), {"rule": "FREQ=DAILY;UNTIL=20260531"}),
        (replace(NIGHTS, excluded=DATES), {**AN_HOUR_LATER, "excluded": LATER}),
        (NIGHTS, {"reason": "quiet"}),
    ],
)
def test_what_opens_less_narrows(before: Entry, changed: dict[str, Any]) -> None:
    """Shorter, from later on, until earlier, on fewer dates."""
    after = replace(before, **changed)
    assert only_narrows(checked(before), checked(after))
    assert without(opened(after), opened(before)) == []


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        (NIGHTS, {"duration": 9 * HOUR}),
        (NIGHTS, {"starts": WALL("2026-01-03 21:00")}),
        (NIGHTS, {"starts": WALL("2026-01-03 21:00"), "duration": 9 * HOUR}),
        (NIGHTS, {"starts": WALL("2026-01-03 23:00")}),
        (NIGHTS, {"starts": WALL("2026-01-03 23:00"), "duration": 7 * HOUR + MINUTE}),
        (NIGHTS, {"zone": "Europe/London"}),
        (NIGHTS, {"effect": Effect.FREEZE}),
        (replace(NIGHTS, effect=Effect.FREEZE), {"duration": 7 * HOUR}),
        (NIGHTS, {"added": DATES}),
        (replace(NIGHTS, excluded=DATES), {"excluded": DATES[:1]}),
        (replace(NIGHTS, added=DATES, excluded=DATES), {"excluded": ()}),
        (replace(NIGHTS, valid_until=MOMENT), {"valid_until": MOMENT + DAY}),
        (replace(NIGHTS, valid_until=MOMENT), {"valid_until": None}),
        (replace(NIGHTS, valid_from=MOMENT), {"valid_from": MOMENT - DAY}),
        (replace(NIGHTS, valid_from=MOMENT), {"valid_from": None}),
        (ONCE, {"rule": "FREQ=DAILY"}),
        (NIGHTS, {"rule": "FREQ=WEEKLY"}),
        (nightly("COUNT=5"), {"rule": "FREQ=DAILY;COUNT=6"}),
        (nightly("COUNT=5"), {"rule": "FREQ=DAILY"}),
        (nightly("UNTIL=20260601"), {"rule": "FREQ=DAILY"}),
        (nightly("UNTIL=20260601"), {"rule": "FREQ=DAILY;UNTIL=20260602"}),
        (nightly("UNTIL=20260601T000000Z"), {"rule": "FREQ=DAILY;UNTIL=20260601T000000"}),
        # A date that was taken out would come back an hour later.
        (replace(NIGHTS, excluded=DATES), AN_HOUR_LATER),
        # So would one that was added and taken out, by its own time.
        (replace(NIGHTS, added=DATES, excluded=DATES), {**AN_HOUR_LATER, "excluded": LATER}),
        # A rule that names its hours does not follow its first start.
        (nightly("BYHOUR=22,23"), AN_HOUR_LATER),
        (HOURLY, {"starts": WALL("2026-01-03 22:10"), "duration": HOUR / 4}),
        # What was revoked by its start would not be, by another one.
        (
            replace(
                NIGHTS, approved=approved_spans([DecisionFact(True), DecisionFact(False, MOMENT)])
            ),
            AN_HOUR_LATER,
        ),
        (replace(NIGHTS, rule="broken"), {"rule": "FREQ=DAILY"}),
    ],
)
def test_what_may_open_more_does_not(before: Entry, changed: dict[str, Any]) -> None:
    """And so does not what is another window altogether, or cannot be told."""
    assert not only_narrows(before, replace(before, **changed))


def opened(entry: Entry, near: datetime = MOMENT, reach: timedelta = 400 * DAY) -> list[Span]:
    return union(occurrences(entry, start=near - reach, end=near + reach))


MINUTES = st.sampled_from((0, 0, 0, 1, 15, 30, 45, 60, 61, 90, 120, 180))
PLACES = [(zone, change) for zone in ZONES for change in changes(zone)[:6]]


@st.composite
def narrowings(draw: st.DrawFn) -> tuple[Entry, Entry, datetime]:
    """Return a window near a change of its clock, one that nearly always narrows it, and when."""
    zone, change = draw(st.sampled_from(PLACES))
    chance = Random(draw(st.integers(0, 2**32)))
    entries = [entry for one in some_calendars(chance, change, zone) for entry in one.entries]
    windows = [entry for entry in entries if entry.effect is Effect.WINDOW]
    assume(windows)
    before = windows[0]
    if draw(st.booleans()):
        before = replace(before, approved=_some_approval(draw, before, change))
    later = draw(MINUTES) * MINUTE
    after = replace(
        before,
        starts=before.starts + later,
        duration=before.duration - later - draw(MINUTES) * MINUTE + draw(MINUTES) * MINUTE,
        added=tuple(wall for wall in before.added if draw(st.booleans())),
        excluded=(
            *(wall + later for wall in before.excluded if draw(st.integers(0, 9))),
            *(wall + later for wall in before.added if draw(st.booleans())),
        ),
        valid_until=draw(st.sampled_from((before.valid_until, change, change + HOUR))),
        valid_from=draw(st.sampled_from((before.valid_from, change, change - HOUR))),
    )
    assume(after.duration > timedelta(0))
    return before, after, change


def _some_approval(draw: st.DrawFn, entry: Entry, near: datetime) -> tuple[Span, ...]:
    """Return what is agreed to by decisions on all of a window and on some occurrences."""
    unapproved = replace(entry, approved=None, approved_starts=None)
    starts = [span.start for span in occurrences(unapproved, start=near - DAY, end=near + DAY)][:4]
    moments = st.sampled_from([None, *starts])
    decisions = st.builds(DecisionFact, st.booleans(), moments, st.sampled_from((None, near)))
    return approved_spans(draw(st.lists(decisions, min_size=1, max_size=4)))


@settings(max_examples=settings.default.max_examples)
@given(narrowings())
def test_what_narrows_opens_nothing_new(drawn: tuple[Entry, Entry, datetime]) -> None:
    """By the occurrences that count, across changes of the clock, with what was approved."""
    before, after, near = drawn
    assume(only_narrows(before, after))
    new = without(opened(after, near, 5 * DAY), opened(before, near, 10 * DAY))
    assert new == []
