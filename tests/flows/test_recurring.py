"""Recurring jobs on the real stack: beat pulses, system workers tick, workers run."""

from datetime import timedelta
from pathlib import Path

import pytest

from fleet.crash_points import KNOWN
from jobs.core.ids import scheduled_id
from jobs.management.stack.programs import beat, job_worker, system_worker
from jobs.models import Owner, Run
from jobs.recurring.pulse import TICK_SLOTS
from tests.flows.kept import drained, kept
from tests.flows.processes import Processes
from tests.flows.recurring import due_soon, ids_of, starts
from tests.flows.world import make_owner
from tests.waiting import wait_for

FAULTS = [
    "pulse.after_commit:3",
    "tick.after_insert:2",
    "tick.after_publish:2",
    "tick.before_done:4",
]


@pytest.mark.proof
def test_pulses_and_ticks_may_end_anywhere(
    processes: Processes, owner: Owner, tmp_path: Path
) -> None:
    """Each of their crash points is met once, and each due time has its run all the same.

    With history and without, of two owners: none is early, and each has the due time's id.
    """
    assert {fault.partition(":")[0] for fault in FAULTS} == {
        name for name in KNOWN if name.startswith(("pulse.", "tick."))
    }
    once = tmp_path / "once"
    once.mkdir()
    programs = [job_worker("one", slots=2), system_worker(), beat()]
    environ = {"FAULT": ",".join(FAULTS), "FAULT_ONCE_DIR": str(once)}
    with kept(processes, *programs, **environ) as stack:
        full = due_soon(owner, seconds=3, count=24, history="full")
        none = due_soon(make_owner("globex"), seconds=3, count=24, history="none")
        wanted = {*ids_of(full), *ids_of(none)}

        def is_done() -> bool:
            stack.watch()
            return set(starts(processes.tasks)) >= wanted and len(list(once.iterdir())) == 4

        wait_for(is_done, seconds=90, what="every due time, and every fault")
        drained(stack)
    assert {(run.job_id, run.due_at) for run in Run.objects.all()} == {
        (job.pk, at) for job, at in full.items()
    }
    late = sorted((run.created_at - run.due_at).total_seconds() for run in Run.objects.all())
    print(f"lateness: median {late[len(late) // 2]:.2f} s, most {late[-1]:.2f} s")
    assert late[0] >= 0
    bodies = starts(processes.tasks)
    assert set(bodies) == wanted
    assert {bodies[run_id] for run_id in ids_of(full)} == {1}
    # Hints of one tick, published again after their runs: history `none` allows it.
    twice = [at for job, at in none.items() if bodies[str(scheduled_id(job.pk, at))] > 1]
    assert max(bodies.values()) <= 2
    assert not twice or max(twice) - min(twice) < timedelta(seconds=TICK_SLOTS / 2)
    print(f"runs without history that ran twice: {len(twice)}")
