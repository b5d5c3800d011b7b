"""Guards of the rollups, in `jobs/system/sql`."""

from typing import Final

from tests.mutations.mutation import broken

ROLLING: Final = "tests/jobs/system/rollups/test_rolling.py::test_"

ROWS: Final = (
    broken(
        "a minute is final when no open transaction can add to it",
        "statistics are exact",
        f"{ROLLING}a_late_commit_is_counted_once",
        instead="true",
    ),
    broken(
        "an attempt that was given back has no outcome",
        "statistics are exact",
        f"{ROLLING}a_failed_run_is_counted_once",
        instead="AND a.run_state <> ''",
    ),
    broken(
        "an end that an attempt made is counted with that attempt",
        "statistics are exact",
        f"{ROLLING}a_failed_run_is_counted_once",
        instead="AND NOT EXISTS (SELECT FROM (SELECT * FROM jobs_attempt LIMIT 0) AS a",
    ),
)
