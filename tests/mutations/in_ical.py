"""Guards of iCalendar files: what an import leaves alone, and who reads a feed."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

IMPORT: Final = "jobs/calendars/ical_import.py"
FEED: Final = "jobs/calendars/ical_feed.py"
PLANNED: Final = "jobs/calendars/sql/planned_runs.sql"
SERIES: Final = "jobs/calendars/ical/series.py"
IMPORTED: Final = "tests/jobs/calendars/test_ical_import.py::test_"
FED: Final = "tests/jobs/calendars/test_ical_feed.py::test_"
READ: Final = "tests/jobs/calendars/ical/test_reading.py::test_"

ROWS: Final = (
    Mutation(
        "an import that may open more needs a new approval",
        "G14",
        IMPORT,
        "kept += apply_change(row, changed, actor=actor) == UNCHANGED",
        "row.__dict__.update(changed)",
        (f"{IMPORTED}what_is_as_it_was_keeps_its_approval_and_the_rest_asks_again",),
    ),
    Mutation(
        "windows of other sources are not an import's",
        "G14",
        IMPORT,
        "rows = calendar.windows.filter(source=source)",
        "rows = calendar.windows.filter()",
        (f"{IMPORTED}others_windows_are_never_touched",),
    ),
    Mutation(
        "an import does not leave a calendar without windows",
        "G14",
        IMPORT,
        "if windows.filter(source=source).exists() and",
        "if False and",
        (f"{IMPORTED}an_import_does_not_open_a_calendar_for_good",),
        # The change itself is refused as well, in words that name no file.
        fails_with="OptionError",
    ),
    Mutation(
        "what is replaced is out of its series",
        "G14",
        SERIES,
        "*(one.replaces for one in others if one.replaces is not None)",
        "*()",
        (
            f"{READ}what_is_cancelled_is_not_there",
            f"{READ}an_exception_is_known_again_wherever_it_is_moved",
        ),
    ),
    Mutation(
        "only its secret opens a feed",
        "feeds",
        FEED,
        "filter(feed_hash=_hash(secret))",
        "filter(feed_hash__isnull=False)",
        (f"{FED}a_secret_is_shown_once_and_its_hash_is_kept",),
    ),
    Mutation(
        "a feed counts the runs of its own calendar",
        "feeds",
        PLANNED,
        "r.owner_id IN (SELECT owner_id FROM applying)",
        "true",
        (f"{FED}runs_that_wait_are_a_number",),
    ),
)
