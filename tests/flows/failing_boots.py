"""Loaded into a worker beside its tasks: processes of its pool end while they boot.

The first BOOTS_THAT_FAIL of them. Each notes its boot as a byte in the file at BOOTS. With
BOOT_TRIES the worker ends after so many tries.
"""

import os
from pathlib import Path
from typing import Any

from celery import signals

from fleet.pool import children

children.TRIES = int(os.environ.get("BOOT_TRIES", children.TRIES))


@signals.worker_process_init.connect
def end_early(**_signal: Any) -> None:
    """Note this boot, and end the process when it is one of the first."""
    with Path(os.environ["BOOTS"]).open("ab", buffering=0) as boots:
        boots.write(b".")
        number = boots.tell()
    if number <= int(os.environ["BOOTS_THAT_FAIL"]):
        os._exit(1)
