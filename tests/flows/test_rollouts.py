"""Waves while processes end between counting, stopping and releasing (G30)."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.db import connection

from fleet.crash_points import KNOWN
from jobs import Waves, submit_many
from jobs.core.errors import ActionRefused
from jobs.management.stack.programs import beat, job_worker, system_worker
from jobs.models import Rollout, Submission
from jobs.rollouts import rounds, verbs
from jobs.system.promotion import queue_due
from tests.flows.kept import kept, open_count
from tests.flows.processes import Processes
from tests.flows.rollouts import assert_in_waves, assert_nothing_starts
from tests.judge import Verdict, read_task_events
from tests.waiting import wait_for

FAULTS = [f"{name}:1" for name in KNOWN if name.startswith("rollout.")]
SIZES = (2, 8, 20, 30)
STOP_AT = 1
FAILING = {2, 3, 4, 6, 12, 14, 16, 18, 40, 44}
"""The places of runs that fail; those of the second wave and of the later ones stop it."""


def test_rounds_may_end_anywhere(
    processes: Processes, verdict: Callable[..., Verdict], tmp_path: Path
) -> None:
    """A process ends at each point; two system workers, and then this process, decide at once."""
    once = tmp_path / "once"
    once.mkdir()
    workers = [job_worker(name, slots=2) for name in ("one", "two")]
    systems = [system_worker(name) for name in ("system", "system-2")]
    fault = {"FAULT": ",".join(FAULTS), "FAULT_ONCE_DIR": str(once)}
    with kept(processes, *workers, *systems, beat(), **fault) as stack:
        made = submit_many(
            "tests.fail",
            [{"times": int(number in FAILING)} for number in range(sum(SIZES))],
            owner="acme",
            max_attempts=1,
            waves=Waves(sizes=SIZES, stop_at=STOP_AT),
        )

        def fired() -> set[str]:
            return {marker.name for marker in once.iterdir()}

        def is_over() -> bool:
            stack.watch()
            if fired() == set(FAULTS):
                # Not before: it would leave the others nothing to decide.
                rounds.advance(queue_due)
            return state_of(made) == "stopped" or not open_count()

        stops = 0
        while open_count():
            wait_for(is_over, seconds=60, what="a stop, or the end")
            if state_of(made) == "stopped":
                assert_nothing_starts(processes.tasks.path, query, seconds=1)
                with suppress(ActionRefused):  # its last runs have ended meanwhile
                    verbs.resume(made)
                stops += 1
    assert fired() == set(FAULTS)
    assert stops >= 2  # all runs of the last wave may have ended before its stop
    ids = [str(run_id) for run_id in made.runs.order_by("id").values_list("id", flat=True)]
    assert_in_waves(read_task_events(processes.tasks.path), ids, list(SIZES))
    verdict(made)


def state_of(submission: Submission) -> str:
    return Rollout.objects.get(pk=submission.pk).state


def query(text: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()
