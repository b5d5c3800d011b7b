"""Programs that are run to their end."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.preloaded import Preloaded
from tests.waiting import SLOWEST

Done = subprocess.CompletedProcess[str]
PROJECT = Path(__file__).parent.parent


def ran(
    *command: str,
    environ: Mapping[str, str] | None = None,
    folder: Path = PROJECT,
    seconds: float = 120,
) -> Done:
    """Run a program, in this environment or in ours; the caller looks at how it ended."""
    return subprocess.run(
        command,
        env=environ,
        cwd=folder,
        timeout=SLOWEST * seconds,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def python(*words: str, environ: Mapping[str, str] | None = None, seconds: float = 120) -> Done:
    """Run this Python in the project's folder; libraries are imported already, nothing of ours."""
    process = Preloaded(
        words,
        os.environ if environ is None else environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            output, errors = process.communicate(timeout=SLOWEST * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Done(words, process.returncode, output, errors)
