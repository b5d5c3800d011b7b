"""python -m tests.compat: a short suite on each combination of versions that Fairshift supports.

Without options on few combinations that have each version with each Celery, with --all on all of
them. Pythons that are not found are named and left out. Exits with 1 when a test fails.
"""

import argparse
import os
import subprocess
import sys
import time
from typing import Final

from tests.compat.cells import PYTHONS, Cell, covering, every
from tests.compat.environments import NotMade, made, python_of
from tests.docs.pages import PROJECT

FLOWS: Final = "tests/flows/test_"
GATE: Final = "tests/fleet/worker/test_gate.py"
STOCK: Final = "tests/contrast/test_stock_behaviour.py::test_"
_HARD_LIMIT: Final = f"{STOCK}a_hard_limit_fails_a_task_once"
"""Before Celery 5.7 the request sends no `task-failed` when a limit is reached."""
_NO_RESULT: Final = f"{GATE}::test_a_payload_that_cannot_be_dressed_fails_its_run"
"""Before Celery 5.6 the task decides whether a failure is stored, and not its request."""
SUITE: Final = (
    "tests/fleet/test_patches.py::test_the_installed_versions_have_each_name",
    "tests/fleet/test_overruling.py",
    "tests/fleet/test_versions.py",
    "tests/fleet/worker/test_consumer.py",
    GATE,
    "tests/jobs/test_celery_setup.py",
    f"{FLOWS}journey.py",
    f"{FLOWS}limits.py",
    f"{FLOWS}callbacks.py::test_a_chord_ends_with_all_results",
    f"{FLOWS}callbacks.py::test_a_plain_chord_ends_with_all_results",
    f"{FLOWS}cancel.py::test_a_running_task_is_told",
    f"{FLOWS}cancel.py::test_a_task_that_does_not_listen_is_killed",
    f"{FLOWS}kills.py::test_a_killed_pool_child_ends_its_attempt_alone",
    f"{FLOWS}lost_broker.py::test_a_worker_without_its_broker_records_ends_and_kills",
    f"{STOCK}no_queue_starves_behind_another_s_backlog",
    _HARD_LIMIT,
    f"{STOCK}what_runs_is_terminated",
    f"{STOCK}a_warm_shutdown",
)
"""Plain and durable work, chords, limits, lost children, lost connections, revoke and ends."""
NOT_ON: Final = {
    # There a call that asks for its result gets none if its task ignores results; stock likewise.
    "5.5.3": (f"{FLOWS}journey.py::test_plain_celery_tasks_run_beside", _HARD_LIMIT, _NO_RESULT),
    "5.6.3": (_HARD_LIMIT,),
}
ENDING_LINES: Final = 40


def main() -> int:
    """Run the suite on each cell, one after the other; return the exit status."""
    given = _arguments()
    pythons = [version for version in PYTHONS if python_of(version)]
    if missing := sorted({*PYTHONS} - {*pythons}):
        print(f"Not found, so not tested: Python {', '.join(missing)}")
    cells = (every if given.all else covering)(pythons)
    cells = [cell for cell in cells if given.only in str(cell)]
    if given.list:
        print(*cells, sep="\n")
        return 0
    failed = [cell for cell in cells if not _passes(cell, given.tests)]
    return 1 if failed else 0


def _passes(cell: Cell, tests: list[str]) -> bool:
    """Run the suite on one cell, print one line, or the end of its output if a test fails."""
    began = time.monotonic()
    try:
        python = made(cell)
    except NotMade as error:
        print(f"{cell}: no environment\n{error}", flush=True)
        return False
    # The logs of a scene's processes would take the place of what failed.
    command = [f"{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--show-capture=no"]
    command += tests or SUITE
    command += [f"--deselect={test}" for test in NOT_ON.get(cell.celery, ())]
    environ = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, cwd=PROJECT, env=environ, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines() or done.stderr.splitlines() or [""]
    print(f"{cell}: {lines[-1]}, {time.monotonic() - began:.0f} s in all", flush=True)
    if done.returncode:
        print(*lines[-ENDING_LINES:], sep="\n", flush=True)
    return done.returncode == 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.compat",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="test all combinations")
    parser.add_argument("--list", action="store_true", help="print them, and test none")
    parser.add_argument("--only", default="", help="those with this text in their name")
    parser.add_argument("tests", nargs="*", help="pytest node ids; none means the short suite")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
