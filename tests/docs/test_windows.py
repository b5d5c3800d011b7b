"""docs/use/windows.md: its example runs, and its table of changed clocks is what the code does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import jobs.windows
from jobs.windows import Effect, Entry, checked, occurrences
from tests.docs.pages import blocks, code_words, entries, read, table

PAGE = read("docs/use/windows.md")
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    "row", table(PAGE, after="## When clocks are changed"), ids=lambda row: " ".join(row[:3])
)
def test_examples_of_changed_clocks(row: list[str]) -> None:
    """Each example, as a daily window and as a daily freeze, is this span of its day."""
    (first, last), [zone], [day] = map(code_words, row[:3])
    starts = datetime.fromisoformat(f"{day} {first}")
    duration = (datetime.fromisoformat(f"{day} {last}") - starts) % DAY
    for effect, wanted in zip((Effect.WINDOW, Effect.FREEZE), row[3:], strict=True):
        entry = checked(Entry(effect, starts - 40 * DAY, duration, zone, "FREQ=DAILY"))
        near = starts.replace(tzinfo=UTC)
        found = [
            f"{span.start:%H:%M}–{span.end:%H:%M}"
            for span in occurrences(entry, start=near - 2 * DAY, end=near + 2 * DAY)
            if span.start.astimezone(ZoneInfo(zone)).date() == starts.date()
        ]
        assert (found or ["never"]) == [wanted]


def test_the_example_runs() -> None:
    """As the page has it."""
    [example] = blocks(PAGE, info="python")
    exec(example.text, {})


def test_questions_are_named() -> None:
    """Every function that the package offers stands in the page."""
    asked = {
        word.split("(")[0]
        for name, _ in entries(PAGE, after="## The functions")
        for word in code_words(name)
    }
    offered = {name for name in jobs.windows.__all__ if name[0].islower()}
    assert asked == offered
