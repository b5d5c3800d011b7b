"""Loaded into a worker beside its tasks: shorter patience, and a thread that dies.

NO_CHILD_SECONDS is how long the worker waits without any process. When the file at IO_THREAD_DIES
exists, the thread that admits and records gets a SystemExit, wherever it is.
"""

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

from celery import signals

from fleet.pool import children

children.NO_CHILD_SECONDS = float(os.environ.get("NO_CHILD_SECONDS", children.NO_CHILD_SECONDS))


def _kill_later(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)
    [ident] = [each.ident for each in threading.enumerate() if each.name == "fairshift-io"]
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(ident or 0), ctypes.py_object(SystemExit)
    )
    path.rename(path.with_suffix(".done"))


@signals.worker_ready.connect
def watch(**_signal: Any) -> None:
    """Wait for the file in a thread of the worker's main process."""
    if path := os.environ.get("IO_THREAD_DIES"):
        threading.Thread(target=_kill_later, args=(Path(path),), daemon=True).start()
