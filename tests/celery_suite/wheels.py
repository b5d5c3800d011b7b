"""The wheels that Celery's suite imports and the project does not have, installed once."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.celery_suite.sides import SuiteBroken

LOCK: Final = Path(__file__).with_name("wheels.txt")


def installed_wheels() -> Path:
    """Return the folder of the locked wheels; they are installed at the first call.

    Beside the environment's own packages, which stay as they are: no dependency is resolved.
    """
    version = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    folder = Path(sys.prefix) / f"celery-suite-{version}"
    ready = folder / ".ready"
    if not ready.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        command += ["--disable-pip-version-check", "--require-hashes"]
        command += ["--target", str(folder), "--requirement", str(LOCK)]
        if subprocess.call(command):
            raise SuiteBroken(f"The wheels of {LOCK.name} are not installed: see pip's message.")
        ready.touch()
    return folder
