"""python -m tests.tasks_suite CHECKOUT: the tests of django-tasks, or Django's, on our backend.

CHECKOUT is a checkout of either, of the installed version; its package is not used, the installed
one is. Our backend takes the place of the dummy one (stores) and of the immediate one (runs at
once). Tests that must differ are named in `child.py`. Exits with 1 when another one fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from config.embedded import __main__ as _servers  # noqa: F401  no import is possible at the exit
from tests import own_servers  # noqa: F401  servers of its own

CHILD = Path(__file__).with_name("child.py")
PROJECT = CHILD.parents[2]


def main() -> int:
    """Run the suite in a process of its own, whose package `tests` is theirs."""
    parser = argparse.ArgumentParser(prog="python -m tests.tasks_suite")
    parser.add_argument("checkout", type=Path, help="a checkout of django-tasks or of Django")
    given = parser.parse_args()
    is_djangos = (given.checkout / "django").is_dir()
    source = given.checkout / ("tests/tasks" if is_djangos else "tests")
    if not source.is_dir():
        parser.error(f"{given.checkout} has no {source.relative_to(given.checkout)}")
    with tempfile.TemporaryDirectory(prefix="fairshift-tasks-suite-") as folder:
        shutil.copytree(source, Path(folder) / source.name)
        package = "django.tasks" if is_djangos else "django_tasks"
        command = [sys.executable, str(CHILD), folder, package]
        return subprocess.run(command, env=os.environ, cwd=PROJECT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
