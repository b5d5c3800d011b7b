"""python -m tests.lanes [PYTEST OPTIONS]: the whole suite in four processes, side by side.

More than half of it waits (for leases, time limits, processes that start): two lanes take turns
at the files of that, one has the tests of jobs, the last one all others. Each lane has servers of
its own. With a path among the options, or servers given by URL, there is one lane.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent
WAITING: Final = ("config", "flows", "mutations")
NO_TESTS: Final = 5


def main() -> int:
    """Run the lanes and show what they print, one after the other; 0 when all is well."""
    given = sys.argv[1:]
    if any(_is_path(word) for word in given) or os.environ.get("DATABASE_URL"):
        return subprocess.call([sys.executable, "-m", "pytest", *given])
    (shown, first), *others = lanes().items()
    running = [_start(name, paths, given) for name, paths in others]
    try:
        codes = [_start(shown, first, given, is_shown=True).wait()]
        printed = [lane.communicate()[0] for lane in running]
    except BaseException:
        for lane in running:
            lane.terminate()
            lane.wait()
        raise
    sys.stdout.write("".join(printed))
    codes += [lane.returncode for lane in running]
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    return max(bad, default=NO_TESTS if set(codes) == {NO_TESTS} else 0)


def lanes() -> dict[str, list[str]]:
    """Return what each lane takes, by its name; nobody lists the files of a new test."""
    waiting = sorted(file for name in WAITING for file in (ROOT / name).glob("**/test_*.py"))
    folders = sorted(path for path in ROOT.iterdir() if any(path.glob("**/test_*.py")))
    return {
        "odd": [_named(file) for file in waiting[1::2]],
        "even": [_named(file) for file in waiting[::2]],
        "jobs": ["tests/jobs"],
        "others": [_named(folder) for folder in folders if folder.name not in (*WAITING, "jobs")],
    }


def _start(
    name: str, paths: Sequence[str], given: Sequence[str], *, is_shown: bool = False
) -> subprocess.Popen[str]:
    # Each lane remembers its own failures, for --last-failed.
    cache = f"cache_dir=.pytest_cache/{name}"
    command = [sys.executable, "-m", "pytest", *paths, "-o", cache, *given]
    output = None if is_shown else subprocess.PIPE
    return subprocess.Popen(command, stdout=output, stderr=output and subprocess.STDOUT, text=True)


def _named(path: Path) -> str:
    return f"tests/{path.relative_to(ROOT)}"


def _is_path(word: str) -> bool:
    return not word.startswith("-") and Path(word.partition("::")[0]).exists()


if __name__ == "__main__":
    sys.exit(main())
