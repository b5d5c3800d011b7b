"""Guards of what a task writes of itself, and of ends, in `catalog/sql` and `system/sql`."""

from typing import Final

from tests.mutations.mutation import Mutation

STORE: Final = "tests/jobs/catalog/test_attempt_store.py::test_"
ENDS: Final = "tests/jobs/system/test_ends.py::test_"
RECORDING: Final = "tests/jobs/runs/test_recording.py::test_"
DID_NOT_RAISE: Final = "DID NOT RAISE"

ROWS: Final = (
    Mutation(
        "an attempt that is out of date writes no progress",
        "G4",
        "WHERE id = %(id)s AND %(token)s::int IS NOT NULL AND state || '' <> ''",
        (f"{STORE}a_stale_attempt_writes_nothing_and_learns_it",),
        fails_with=DID_NOT_RAISE,
    ),
    Mutation(
        "an attempt that is out of date writes no checkpoint",
        "G4",
        "WHERE id = %(id)s AND %(token)s::int IS NOT NULL AND state || '' <> ''",
        (f"{STORE}a_checkpoint_of_a_stale_attempt_is_fenced_by_itself",),
        fails_with=DID_NOT_RAISE,
    ),
    Mutation(
        "a snooze spends no attempt",
        "G4",
        "attempt_count = r.attempt_count - (j.after = 'queued' OR j.cause = 'not begun')::int,",
        (f"{RECORDING}a_snooze_spends_no_attempt",),
    ),
    Mutation(
        "an end that was announced is not announced again",
        "each end once",
        "WHERE true",
        (f"{ENDS}an_end_that_was_announced_is_not_announced_again",),
    ),
)
