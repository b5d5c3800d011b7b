"""python -m tests.celery_suite CHECKOUT [TEST ...]: Celery's integration suite, stock and fair.

CHECKOUT is a checkout of Celery; its package is not used, the installed one is. Both sides run at
the same time, each on a Redis of its own. Tests that differ run once more, alone. Exits with 1
when one still differs that `differences.py` does not name.

With `--side fair` (or stock) one side runs alone, with pytest's output as it comes. The code under
test is that of this project; `--tree FOLDER` takes another checkout of Fairshift.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.celery_suite.differences import DIFFERENCES
from tests.celery_suite.results import Result, compare, differing
from tests.celery_suite.sides import SIDES, Suite, SuiteBroken
from tests.celery_suite.wheels import installed_wheels

PROJECT: Final = Path(__file__).resolve().parents[2]
Results = dict[str, Result]


def main() -> int:
    """Run the suite and print the comparison; return the exit status."""
    given = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="fairshift-celery-suite-") as folder:
            suite = Suite(
                checkout=given.checkout,
                tree=given.tree.resolve(),
                wheels=installed_wheels(),
                folder=Path(folder),
                reports=given.reports,
            )
            if given.side:
                return suite.show(given.side, given.tests)
            return _compare(suite, given.tests)
    except SuiteBroken as error:
        print(error, file=sys.stderr)
        return 2


def _compare(suite: Suite, tests: list[str]) -> int:
    found = _both(suite, tests)
    alone: dict[str, Results] = {side: {} for side in SIDES}
    for number, test in enumerate(differing(*found.values())):
        for side, results in _both(suite, [test], name=f"alone-{number}").items():
            alone[side] |= results
    comparison = compare(found, alone=alone, named=DIFFERENCES)
    print(comparison.report())
    return 0 if comparison.ok else 1


def _both(suite: Suite, tests: list[str], *, name: str = "suite") -> dict[str, Results]:
    # Mostly they wait.
    with ThreadPoolExecutor(len(SIDES)) as threads:
        running = {side: threads.submit(suite.run, side, tests, name=name) for side in SIDES}
        return {side: future.result() for side, future in running.items()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.celery_suite",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkout", type=Path, help="a checkout of Celery")
    parser.add_argument("tests", nargs="*", help="pytest node ids; none means all")
    parser.add_argument("--side", choices=SIDES, help="run this side alone, and show its output")
    parser.add_argument("--tree", type=Path, default=PROJECT, help="the Fairshift under test")
    parser.add_argument("--reports", type=Path, help="keep JUnit files and logs in this folder")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
