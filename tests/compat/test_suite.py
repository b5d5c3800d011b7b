"""The short suite of `make compat`."""

import subprocess
import sys

from tests.compat.__main__ import NOT_ON, SUITE
from tests.docs.pages import PROJECT


def test_each_scene_exists() -> None:
    """pytest runs nothing if one of the names is unknown."""
    named = [*SUITE, *(name for names in NOT_ON.values() for name in names)]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [*command, *named], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
