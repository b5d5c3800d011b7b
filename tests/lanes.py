"""python -m tests.lanes [PYTEST OPTIONS]: the whole suite in two processes, side by side.

Half of it waits (for leases, time limits, processes that start), half of it works; each lane has
servers of its own. With a path among the options, or servers given by URL, there is one lane.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent
WAITING: Final = ("tests/flows",)
DEMO: Final = "tests/flows/test_demo.py"
"""Of the flows, but long: the other lane takes it."""
NO_TESTS: Final = 5


def main() -> int:
    """Run the lanes and show what they print, one after the other; 0 when all is well."""
    given = sys.argv[1:]
    if any(_is_path(word) for word in given) or os.environ.get("DATABASE_URL"):
        return subprocess.call([sys.executable, "-m", "pytest", *given])
    second = _start(_others(), given, output=subprocess.PIPE)
    try:
        codes = [_start([*WAITING, f"--ignore={DEMO}"], given, output=None).wait()]
        printed, _ = second.communicate()
    except BaseException:
        second.terminate()
        second.wait()
        raise
    sys.stdout.write(printed)
    codes.append(second.returncode)
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    return max(bad, default=NO_TESTS if set(codes) == {NO_TESTS} else 0)


def _start(
    paths: Sequence[str], given: Sequence[str], *, output: int | None
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", *paths, "-o", f"cache_dir={_cache(paths)}", *given]
    return subprocess.Popen(command, stdout=output, stderr=output and subprocess.STDOUT, text=True)


def _others() -> list[str]:
    """Return every folder of tests that is not in the lane that waits; nobody lists them."""
    folders = sorted(path for path in ROOT.iterdir() if any(path.glob("**/test_*.py")))
    names = [f"tests/{path.name}" for path in folders if path.is_dir()]
    return [*(name for name in names if name not in WAITING), DEMO]


def _cache(paths: Sequence[str]) -> str:
    # Each lane remembers its own failures, for --last-failed.
    return f".pytest_cache/{'others' if DEMO in paths else 'waiting'}"


def _is_path(word: str) -> bool:
    return not word.startswith("-") and Path(word.partition("::")[0]).exists()


if __name__ == "__main__":
    sys.exit(main())
