"""docs/use/windows.md: its example runs, and its table of changed clocks is what the code does."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.windows import Effect, Entry, checked, occurrences
from tests.docs.pages import blocks, code_words, read, table

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
