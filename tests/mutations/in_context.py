"""Guards of what a task writes of itself, and of ends, in `catalog/sql` and `system/sql`."""

from typing import Final

from tests.mutations.mutation import broken

STORE: Final = "tests/jobs/catalog/test_attempt_store.py::test_"
ENDS: Final = "tests/jobs/system/test_ends.py::test_"
RECORDING: Final = "tests/jobs/runs/test_recording.py::test_"
DID_NOT_RAISE: Final = "DID NOT RAISE"

ROWS: Final = (
    broken(
        "an attempt that is out of date writes no progress",
        "G4",
        f"{STORE}a_stale_attempt_writes_nothing_and_learns_it",
        instead="WHERE id = %(id)s AND %(token)s::int IS NOT NULL AND state || '' <> ''",
        fails_with=DID_NOT_RAISE,
    ),
    broken(
        "an attempt that is out of date writes no checkpoint",
        "G4",
        f"{STORE}a_checkpoint_of_a_stale_attempt_is_fenced_by_itself",
        instead="WHERE id = %(id)s AND %(token)s::int IS NOT NULL AND state || '' <> ''",
        fails_with=DID_NOT_RAISE,
    ),
    broken(
        "a snooze spends no attempt",
        "G4",
        f"{RECORDING}a_snooze_spends_no_attempt",
        instead="attempt_count = r.attempt_count"
        " - (j.after = 'queued' OR j.cause = 'not begun')::int,",
    ),
    broken(
        "an end that was announced is not announced again",
        "each end once",
        f"{ENDS}an_end_that_was_announced_is_not_announced_again",
        instead="WHERE true",
    ),
)
