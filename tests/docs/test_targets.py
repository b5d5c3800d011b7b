"""CONTRIBUTING.md: its list has a line for each target of the Makefile."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, code_words, entries, read

# The first one is named beside the list, the second is for readers of README.md.
TOLD_ELSEWHERE = {"help", "demo"}
# Variables that make hands down to what it starts.
FROM_MAKE = {"ARGS", "DJANGO", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHON", "VENV"}


def test_table_names_the_targets() -> None:
    """A newcomer finds every target there, and none that is gone."""
    targets = re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE)
    rows = entries(read("CONTRIBUTING.md"), after="## Set up")
    listed = [code_words(row[0])[0] for row in rows]
    assert len(listed) == len(set(listed))
    assert set(listed) == {f"make {name}" for name in set(targets) - TOLD_ELSEWHERE}


def test_the_version_of_django_is_a_parameter() -> None:
    """In an environment of its own, so that the locked one stays as it is."""
    made = _make("--dry-run", "--always-make", "test", "DJANGO=6.0")
    assert ".venv-django-6.0/bin/python -m pytest" in made.stdout
    assert ".venv-django-6.0/bin/python -m pip install" in made.stdout
    assert '"Django==6.0.*"' in made.stdout
    assert ".venv/" not in made.stdout


@pytest.mark.parametrize(
    ("django", "oldest", "what"),
    [
        ("", 11, "Fairshift"),
        ("5.2", 11, "Fairshift on Django 5.2"),
        ("6.0", 12, "Fairshift on Django 6.0"),
    ],
)
def test_a_python_that_is_too_old_is_refused(
    tmp_path: Path, django: str, oldest: int, what: str
) -> None:
    """In one sentence, before an environment is made: Django 6.0 needs a newer Python than 5.2."""
    (tmp_path / "Makefile").symlink_to(PROJECT / "Makefile")
    (tmp_path / "requirements.lock").touch()
    _posing_as(oldest - 1, tmp_path / "python3")
    refused = _make("lint", f"DJANGO={django}", folder=tmp_path, path=str(tmp_path))
    sentence = f"{what} needs Python 3.{oldest} or newer: give its path as PYTHON=."
    assert refused.returncode != 0
    assert (refused.stdout, refused.stderr.splitlines()[0]) == ("", sentence)
    _posing_as(oldest, tmp_path / "python3")
    taken = _make("lint", f"DJANGO={django}", folder=tmp_path, path=str(tmp_path))
    assert taken.stdout.startswith("Setting up ")


def _posing_as(minor: int, path: Path) -> None:
    """Write a Python that says it is 3.`minor`. It checks versions and makes no environment."""
    code = f"import sys; sys.version_info = (3, {minor}, 0); exec(sys.argv[2])"
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    path.chmod(0o755)


def _make(
    *arguments: str, folder: Path = PROJECT, path: str = os.environ["PATH"]
) -> subprocess.CompletedProcess[str]:
    """Run make as in a new shell, also when these tests were started by make."""
    env = {name: word for name, word in os.environ.items() if name not in FROM_MAKE}
    command = [shutil.which("make") or "make", *arguments]
    env |= {"PATH": path}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
