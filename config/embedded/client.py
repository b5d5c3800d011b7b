"""How a process uses PostgreSQL and Redis: it locks a file of each as long as it lives.

`keeper.lock` is locked by the keeper, and has its process id, then a line with the name and the URL
of each server that runs. `<server>.users` is locked, shared, by each process that uses the server.
"""

import os
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from django.core.exceptions import ImproperlyConfigured

from config.embedded.locks import is_locked, share_lock, take_lock
from config.embedded.places import Places
from config.embedded.postgres import forget_variables
from config.state import PROJECT

ENSURE_SECONDS = 120.0
# Locked as long as the process lives. An exec closes them.
_held: list[BinaryIO] = []


def ensure(servers: Collection[str], *, state_dir: Path) -> dict[str, str]:
    """Return {server: URL}; servers are started if needed, and run while this process lives.

    For PostgreSQL, libpq's variables are removed from this process's environment. Raises
    ImproperlyConfigured with the end of the server's log if one does not start.
    """
    if "postgres" in servers:
        forget_variables()
    places = Places(state_dir)
    deadline = time.monotonic() + ENSURE_SECONDS
    keeper: subprocess.Popen[bytes] | None = None
    try:
        places.state.mkdir(mode=0o755, parents=True, exist_ok=True)
        used = [share_lock(places.users(name)) for name in servers]
        while time.monotonic() < deadline:
            if lock := take_lock(places.lock):
                with lock:
                    if keeper and keeper.wait():
                        raise ImproperlyConfigured(places.log("keeper").read_text().strip())
                    keeper = _start_keeper(places, lock)
            _pid, urls = kept(places)
            if urls.keys() >= set(servers):
                _held.extend(used)
                return urls
            time.sleep(0.03)
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot write to {places.state}: {error.strerror}. Set DATABASE_URL and REDIS_URL,"
            " or FAIRSHIFT_STATE_DIR to a folder that this user may write to."
        ) from error
    raise ImproperlyConfigured(
        f"The embedded servers did not start within {ENSURE_SECONDS:.0f} s: see"
        f" {places.log('keeper').parent}, or set DATABASE_URL and REDIS_URL."
    )


def kept(places: Places) -> tuple[int | None, dict[str, str]]:
    """Return the process id of the keeper, None if none runs, and the URLs of the servers."""
    if not is_locked(places.lock):
        return None, {}
    pid, *servers = places.lock.read_text().splitlines() or ["0"]
    return int(pid), dict(line.split(" ", 1) for line in servers)


def _start_keeper(places: Places, lock: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a keeper that inherits our lock."""
    with places.open_log("keeper") as log:
        log.truncate(0)
        return subprocess.Popen(
            [sys.executable, "-m", "config.embedded", "keep", "--lock", str(lock.fileno())],
            cwd=PROJECT,
            env=os.environ | {"FAIRSHIFT_STATE_DIR": str(places.state)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[lock.fileno()],
        )
