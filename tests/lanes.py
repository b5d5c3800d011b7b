"""python -m tests.lanes [PYTEST OPTIONS]: the whole suite in four processes, side by side.

Two lanes begin with flows and chaos, which wait for much (leases, limits, processes that start),
two with all other tests. Of two, one begins with the first file and the other in the middle. Each
takes files as long as some are left, first of its own kind. Each lane has servers of its own. More
lanes are no faster on two cores: six use all of their time.

With a path among the options, or servers given by URL, there is one lane.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Final

import pytest

from tests import STATES_IN

ROOT: Final = Path(__file__).parent
NO_TESTS: Final = 5
KINDS: Final = ("flows", "others")
MEMORY: Final = Path("/dev/shm")
ROOM: Final = 8 * 2**30
"""Bytes that a folder in memory has free if it is used: many times what a run takes."""
LANES: Final = 2
"""Of each kind."""
LANE: Final = "TEST_LANE"
"""The variable with the path of a lane; in the folder of all lanes each notes what it took."""


def main() -> int:
    """Run the lanes and show what they print, one after the other; 0 when all is well."""
    given = sys.argv[1:]
    if any(_is_path(word) for word in given) or os.environ.get("DATABASE_URL"):
        return subprocess.call([sys.executable, "-m", "pytest", *given])
    with tempfile.TemporaryDirectory(prefix="fairshift-lanes-") as folder:
        lanes = lanes_in(Path(folder))
        running = [_start(lane, given, is_shown=lane is lanes[0]) for lane in lanes]
        try:
            codes = [lane.wait() for lane in running]
        except BaseException:
            for process in running:
                process.terminate()
                process.wait()
            raise
        for lane in lanes[1:]:
            sys.stdout.write(lane.with_suffix(".log").read_text())
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    return max(bad, default=NO_TESTS if set(codes) == {NO_TESTS} else 0)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import a quarter of the test files first, each lane a different one.

    After a clone, pytest must compile all of them (8 s of CPU time), and stores the results. So the
    lanes share this work.
    """
    lane = os.environ.get(LANE)
    if lane and not session.config.option.collectonly:
        lanes = [str(each) for each in lanes_in(Path(lane).parents[1])]
        for path in sorted(ROOT.rglob("test_*.py"))[lanes.index(lane) :: len(lanes)]:
            # pytest reports the error when it collects the file.
            with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
                import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what no other lane has taken; without lanes, pytest's own loop runs all."""
    lane = os.environ.get(LANE)
    if not lane or session.testsfailed or session.config.option.collectonly:
        return None
    # The next item says which fixtures outlive this one: it is taken before this one runs.
    for item, following in pairwise(chain(taken(session.items, Path(lane)), [None])):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def lanes_in(folder: Path) -> list[Path]:
    """Return the paths of all lanes: kind and number."""
    return [folder / kind / str(number) for kind in KINDS for number in range(LANES)]


def taken(items: Sequence[pytest.Item], lane: Path) -> Iterator[pytest.Item]:
    """Yield the items of each file that this lane is the first to take.

    Items of one file that are not side by side count as several files.
    """
    seen: Counter[str] = Counter()
    files: dict[str, list[tuple[Path, list[pytest.Item]]]] = {kind: [] for kind in KINDS}
    for path, group in groupby(items, key=lambda item: item.path):
        name = str(path.relative_to(ROOT)).replace("/", ".")
        seen[name] += 1
        kind = "flows" if name.startswith(("flows.", "chaos.")) else "others"
        files[kind].append((lane.parents[1] / f"{name}-{seen[name]}", list(group)))
    own = files.pop(lane.parent.name)
    begin = len(own) * int(lane.name) // LANES
    for mark, found in chain(own[begin:], own[:begin], *files.values()):
        with suppress(FileExistsError):
            mark.touch(exist_ok=False)
            yield from found


def _start(lane: Path, given: Sequence[str], *, is_shown: bool) -> subprocess.Popen[bytes]:
    """Start a lane; its output goes to a file beside, unless it is shown as it comes."""
    lane.parent.mkdir(exist_ok=True)
    # Each lane remembers its own failures, for --last-failed.
    cache = f"cache_dir=.pytest_cache/{lane.parent.name}-{lane.name}"
    command = [sys.executable, "-m", "pytest", "-p", "tests.lanes", "-o", cache, *given]
    with lane.with_suffix(".log").open("wb") as log:
        output = None if is_shown else log
        # What a lane has compiled spares the next run a tenth of its time.
        environment = os.environ | {LANE: str(lane), "PYTHONDONTWRITEBYTECODE": ""}
        if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM:
            # A twentieth faster: commits do not wait for a disk.
            environment.setdefault(STATES_IN, str(MEMORY))
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)


def _is_path(word: str) -> bool:
    return not word.startswith("-") and Path(word.partition("::")[0]).exists()


if __name__ == "__main__":
    sys.exit(main())
