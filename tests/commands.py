"""Programs that are run to their end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
        timeout=seconds,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def python(*words: str, environ: Mapping[str, str] | None = None) -> Done:
    """Run this Python in the project's folder."""
    return ran(sys.executable, *words, environ=environ)
