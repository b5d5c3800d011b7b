"""Guards of retention, in `jobs/system/sql`."""

from typing import Final

from tests.mutations.mutation import broken

ROUNDS: Final = "tests/jobs/system/retention/test_rounds.py::test_"

ROWS: Final = (
    broken(
        "runs of a submission with open runs are not removed",
        "what must stay is not removed",
        f"{ROUNDS}a_run_stays_while_its_submission_has_open_runs",
        f"{ROUNDS}a_run_stays_while_its_backfill_makes_runs",
        instead="AND true",
    ),
    broken(
        "a run that stays is in the new partition",
        "what must stay is not removed",
        f"{ROUNDS}few_runs_that_stay_share_a_partition",
        instead="WHERE false AND ({system/history_leaves}) IS NOT TRUE",
    ),
)
