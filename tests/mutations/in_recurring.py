"""Guards of due times, lost runs and changed jobs, in the other statements of `jobs`."""

from typing import Final

from tests.mutations.mutation import broken

DUE: Final = "tests/jobs/recurring/test_due.py::test_"
LATE_COMMITS: Final = "tests/jobs/recurring/test_late_commits.py::test_"
MISSED: Final = "tests/jobs/recurring/test_missed.py::test_"
OVERLAP: Final = "tests/jobs/recurring/test_overlap.py::test_"
PULSE: Final = "tests/jobs/recurring/test_pulse.py::test_"
TRIGGER: Final = "tests/jobs/recurring/test_trigger.py::test_"
LEASE: Final = "tests/jobs/system/test_lease.py::test_"
RESCUE: Final = "tests/jobs/system/test_rescue.py::test_"
ONE_JOB: Final = "tests/jobs/definitions/test_single.py::test_"

ROWS: Final = (
    broken(
        "only workers that are silent for a lease are gone",
        "G3, G6",
        f"{RESCUE}what_a_living_worker_holds_is_its_own",
        f"{RESCUE}a_silent_worker_is_gone_after_a_lease",
        instead="OR true",
    ),
    broken(
        "a worker that is silent for a lease is gone",
        "G5",
        f"{RESCUE}a_silent_worker_is_gone_after_a_lease",
    ),
    broken(
        "a worker that has left is gone at once",
        "G20",
        f"{RESCUE}a_worker_that_has_left_is_gone_at_once",
    ),
    broken(
        "what never reached its worker is taken back",
        "G1",
        f"{RESCUE}what_never_reached_a_living_worker_is_taken_back",
        instead="OR (r.worker_id = %(worker)s::uuid AND false",
    ),
    broken(
        "what a living worker holds is not taken back",
        "G6",
        f"{RESCUE}what_never_reached_a_living_worker_is_taken_back",
        instead="AND r.id <> ALL('{}'::uuid[])))",
    ),
    broken(
        "an answer that is on its way has a lease of time",
        "G3",
        f"{RESCUE}what_never_reached_a_living_worker_is_taken_back",
    ),
    broken(
        "due times: the cursor moves in the statement that makes the ticks",
        "G11",
        f"{PULSE}the_slots_up_to_now_are_handed_out_once",
        instead="UPDATE jobs_cursor c SET slot = cursor.slot, beat_at = clock_timestamp()",
    ),
    broken(
        "due times: what is older than the grace is judged",
        "G12",
        f"{PULSE}what_is_older_than_the_grace_is_to_be_caught_up",
        instead="SELECT slot AS until FROM cursor",
    ),
    broken(
        "due times: a due time has one row",
        "G11",
        f"{TRIGGER}triggering_twice_makes_one",
        fails_with="duplicate key",
    ),
    broken(
        "due times: what a tick has seen is not triggered again",
        "G11",
        f"{LATE_COMMITS}what_its_tick_saw_is_not_triggered_again",
    ),
    broken(
        "due times: a schedule holds from when it was written",
        "G11",
        f"{DUE}a_due_time_counts_between_its_bounds",
        instead="(true",
    ),
    broken(
        "due times: the jobs of two ticks are judged one after the other",
        "overlap",
        f"{OVERLAP}two_ticks_at_once_do_not_both_pass",
    ),
    broken(
        "due times: a span is recorded once",
        "G12",
        f"{MISSED}noting_again_changes_nothing",
        fails_with="duplicate key",
    ),
    broken(
        "beats: a lease has one holder until its end",
        "G11",
        f"{LEASE}one_holds_a_lease_until_its_end",
        instead="WHERE true",
    ),
    broken(
        "beats: who does not hold the lease notes nothing",
        "G11",
        f"{LEASE}who_does_not_lead_notes_nothing",
        instead="WHERE name = %(leader)s",
        fails_with="DID NOT RAISE",
    ),
    broken(
        "a job is changed only as its caller has read it",
        "If-Match",
        f"{ONE_JOB}the_later_of_two_writers_changes_nothing[change]",
    ),
    broken(
        "a job is deleted only as its caller has read it",
        "If-Match",
        f"{ONE_JOB}the_later_of_two_writers_changes_nothing[delete]",
    ),
)
