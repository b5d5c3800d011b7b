"""A process's connection to the supervisor, which starts PostgreSQL and Redis."""

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config.embedded.children import tail
from config.embedded.locks import take_lock
from config.embedded.places import Places
from config.embedded.postgres import forget_variables
from config.state import PROJECT

ENSURE_SECONDS = 120.0
# These stay open as long as the process lives: the supervisor counts them. An exec closes them.
_held: list[socket.socket] = []


def ensure(servers: Collection[str], *, state_dir: Path) -> dict[str, str]:
    """Return {server: URL}; servers are started if needed, and run while this process lives.

    For PostgreSQL, libpq's variables are removed from this process's environment. Raises
    ImproperlyConfigured with the end of the server's log if one does not start.
    """
    if "postgres" in servers:
        forget_variables()
    places = Places(state_dir)
    line = " ".join(["use", *servers])
    deadline = time.monotonic() + ENSURE_SECONDS
    supervisor: subprocess.Popen[bytes] | None = None
    while time.monotonic() < deadline:
        connection = connect(places)
        reply = ask(connection, line) if connection else None
        if connection and reply:
            if "error" in reply:
                connection.close()
                raise ImproperlyConfigured(reply["error"])
            _held.append(connection)
            return dict(reply["urls"])
        if supervisor and supervisor.poll() not in (None, 0):
            log = places.log("supervisor")
            raise ImproperlyConfigured(
                "PostgreSQL and Redis did not start by themselves. Set DATABASE_URL and REDIS_URL,"
                f" or see the end of {log}:\n{tail(log)}"
            )
        supervisor = _start(places) or supervisor
        time.sleep(0.03)
    raise ImproperlyConfigured(
        f"The supervisor of the embedded servers does not answer on {places.control}."
    )


def connect(places: Places) -> socket.socket | None:
    """Return a connection to this installation's supervisor; None if none runs."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(places.control))
    except OSError:
        connection.close()
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _pid, uid, _gid = struct.unpack("3i", credentials)
    if uid != os.geteuid():
        connection.close()
        raise ImproperlyConfigured(f"{places.control} belongs to another user; remove it.")
    return connection


def ask(connection: socket.socket, line: str) -> dict[str, Any] | None:
    """Send one line and return the reply; None if the supervisor has ended."""
    connection.settimeout(ENSURE_SECONDS)
    try:
        connection.sendall(line.encode() + b"\n")
        with connection.makefile("rb") as replies:
            reply = replies.readline()
    except OSError:
        reply = b""
    return json.loads(reply) if reply else None


def _start(places: Places) -> subprocess.Popen[bytes] | None:
    """Start a supervisor that inherits our lock; None if another process has the lock."""
    try:
        places.state.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = take_lock(places.lock)
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot write to {places.state}: {error.strerror}. Set DATABASE_URL and REDIS_URL,"
            " or FAIRSHIFT_STATE_DIR to a folder that this user may write to."
        ) from error
    if lock is None:
        return None
    try:
        with places.open_log("supervisor") as log:
            log.truncate(0)
            return subprocess.Popen(
                [sys.executable, "-m", "config.embedded", "serve", "--lock", str(lock)],
                cwd=PROJECT,
                env=os.environ | {"FAIRSHIFT_STATE_DIR": str(places.state)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[lock],
            )
    finally:
        os.close(lock)
