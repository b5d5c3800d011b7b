"""An environment for each Python, with the pins of requirements.lock except for the cell's own."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.compat.cells import Cell
from tests.docs.pages import PROJECT

EXTRAS: Final = ("project", "embedded")
FOR_TESTS: Final = ("hypothesis", "pytest", "pytest-django", "pytest-xdist")
BESIDE: Final = ("psycopg2-binary==2.9.12",)
"""What projects have installed that psycopg 3 stands beside."""
OVERRIDDEN: Final = re.compile(r"celery 5\.5\.\S+ has requirement kombu<5\.6")
"""The one pin of theirs that is overridden: Fairshift needs Kombu 5.7."""


class NotMade(Exception):
    """An environment cannot be made."""


def python_of(version: str) -> str | None:
    """Return the path of a Python of this minor version, on PATH or of pyenv; None if none runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    for path in filter(None, [shutil.which(f"python{version}"), *map(str, found)]):
        # pyenv has a name on PATH for each version, also for those that it does not start.
        if not subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode:
            return path
    return None


def made(cell: Cell) -> Path:
    """Return the Python of a cell's environment, with the cell's pins.

    Cells with the same Python share it, one after the other: few packages change between them.
    """
    folder = PROJECT / f".venv-compat-{cell.python}"
    python, pins = folder / "bin" / "python", folder / "pins.txt"
    if not python.exists():
        _run(f"{python_of(cell.python)}", "-m", "venv", "--without-pip", str(folder))
    pins.write_text("\n".join(_pins(cell)))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", f"{python}")
    # The lock has resolved them; the resolver would refuse Celery 5.5 with Kombu 5.7. What the
    # tests import is compiled then.
    install = ("install", "--quiet", "--no-deps", "--no-compile", "--requirement", str(pins))
    _run(*pip, *install)
    problems = subprocess.run([*pip, "check"], capture_output=True, text=True, check=False)
    if wrong := [line for line in problems.stdout.splitlines() if not _is_expected(line)]:
        raise NotMade("\n".join(wrong))
    return python


def _is_expected(line: str) -> bool:
    return line == "No broken requirements found." or OVERRIDDEN.match(line) is not None


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMade(done.stderr.strip() or f"{command[0]} has ended with {done.returncode}")


def _pins(cell: Cell) -> list[str]:
    lock = (PROJECT / "requirements.lock").read_text()
    locked = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", lock, re.MULTILINE))
    own = {"celery": cell.celery, "redis": cell.redis, "django": f"{cell.django}.*"}
    needed = sorted(_needed(cell))
    return [f"{name}=={own.get(name, locked[name])}" for name in needed if name in locked] + [
        *BESIDE
    ]


def _needed(cell: Cell) -> set[str]:
    """Return the names of Fairshift's packages and of those that its tests import."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *FOR_TESTS]
    lines += [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    found: set[str] = set()
    asked: set[tuple[str, frozenset[str]]] = set()
    left = list(map(Requirement, lines))
    while left:
        one = left.pop()
        name, extras = canonicalize_name(one.name), frozenset(one.extras)
        found.add(name)
        if (name, extras) not in asked:
            asked.add((name, extras))
            left += _required(name, extras, cell.python)
    return found


def _required(name: str, extras: frozenset[str], python: str) -> Iterator[Requirement]:
    """Yield what an installed package needs on that Python."""
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return  # not on this Python
    for one in map(Requirement, lines):
        facts = [{"python_version": python, "extra": extra} for extra in ("", *extras)]
        if one.marker is None or any(map(one.marker.evaluate, facts)):
            yield one
