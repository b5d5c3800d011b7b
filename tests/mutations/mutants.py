"""Copies of the project in which one guard is broken, and what tests say in them."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutations.mutation import Mutation

PROJECT: Final = Path(__file__).resolve().parents[2]
COPIED: Final = ("config", "fleet", "jobs", "templates", "tests", "manage.py", "pyproject.toml")
MARK: Final = "-- guard: "
TESTS_FAILED: Final = 1
PATIENCE_SECONDS: Final = 240


@dataclass(frozen=True, slots=True)
class Verdict:
    """What pytest answered: its exit code, its output, and of each test what it failed with."""

    code: int
    output: str
    failures: Mapping[str, str]
    errors: Mapping[str, str]


def copied(folder: Path) -> Path:
    """Copy what tests need into a folder; return it."""
    for name in COPIED:
        source, target = PROJECT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    return folder


def guards(folder: Path) -> Iterator[tuple[str, Path, int]]:
    """Find each comment `-- guard: …`: its words, its file, the index of the guarded line."""
    places = ("jobs/*/sql/*.sql", "fleet/**/*.lua")
    for path in sorted(path for place in places for path in folder.glob(place)):
        lines = path.read_text().splitlines()
        for at, line in enumerate(map(str.lstrip, lines)):
            if line.startswith(MARK):
                below = range(at + 1, len(lines))
                guarded = next(n for n in below if not lines[n].lstrip().startswith("--"))
                yield line.removeprefix(MARK), path, guarded


def break_guard(mutation: Mutation, folder: Path) -> None:
    """Replace the guarded line in a copy."""
    path, at = next((path, at) for name, path, at in guards(folder) if name == mutation.guard)
    lines = path.read_text().splitlines()
    indent = lines[at][: -len(lines[at].lstrip())]
    lines[at] = indent + mutation.instead
    path.write_text("\n".join(lines) + "\n")


def play(folder: Path, tests: Sequence[str], *, servers: Mapping[str, str]) -> Verdict:
    """Run tests in a copy of the project."""
    report = folder / "report.xml"
    done = subprocess.run(
        pytest_command(folder, f"--junitxml={report}", "--reuse-db", *tests),
        cwd=folder,
        env=environment(folder, servers),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    cases = ET.parse(report).iter("testcase") if report.exists() else ()
    failures: dict[str, str] = {}
    errors: dict[str, str] = {}
    for case in cases:
        file, _, in_class = case.get("classname", "").partition(".Test")
        name = f"{file.replace('.', '/')}.py::{in_class and f'Test{in_class}::'}{case.get('name')}"
        for found, tag in ((failures, "failure"), (errors, "error")):
            for child in case.findall(tag):
                # Not the lines between, in which any word of the test's source may stand.
                found[name] = f"{child.get('message')}\n{(child.text or '').splitlines()[-1]}"
    return Verdict(done.returncode, done.stdout + done.stderr, failures, errors)


def pytest_command(folder: Path, *options: str) -> list[str]:
    """Return the command that runs the copy's tests and leaves nothing elsewhere."""
    base = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}")
    return [*base, *options]


def environment(folder: Path, servers: Mapping[str, str]) -> dict[str, str]:
    """Return the variables under which Python finds the copy before the project."""
    return {**os.environ, **servers, "PYTHONPATH": str(folder)}
