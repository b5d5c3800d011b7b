"""The process that owns the embedded servers while other processes use them.

Single-threaded: the kernel ends the servers when the thread that started them ends.
"""

import os
import signal
import time
from types import FrameType
from typing import BinaryIO

from config.embedded.accounts import server_account
from config.embedded.locks import lock_alone, opened, unlock
from config.embedded.places import Places
from config.embedded.postgres import Postgres, forget_variables
from config.embedded.redis import Redis
from config.embedded.server import Server

LINGER_SECONDS = 3.0
TICK_SECONDS = 0.1


def keep(places: Places, *, lock: BinaryIO) -> None:
    """Run until no process has used a server for LINGER_SECONDS, or until SIGTERM.

    `lock` is the locked `keeper.lock`. Leaves only data, locks and logs.
    """
    forget_variables()
    is_told: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        is_told.append(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    account = server_account()
    places.make_sockets(account)
    servers = (Postgres(places, account=account), Redis(places, account=account))
    kept = [Kept(one, users=opened(places.users(one.name)), lock=lock) for one in servers]
    shown = ""
    try:
        while not is_told:
            used = [one.follow(time.monotonic()) for one in kept]
            running = [server for server in servers if server.pid is not None]
            if not any(used) and not running:
                return
            urls = [f"{server.name} {server.url}\n" for server in running]
            if shown != (shown := "".join([f"{os.getpid()}\n", *urls])):
                # A process that reads between these two reads again.
                lock.truncate(0)
                os.pwrite(lock.fileno(), shown.encode(), 0)
            time.sleep(TICK_SECONDS)
    finally:
        lock.truncate(0)
        for server in servers:
            server.stop()
        places.remove_sockets()


class Kept:
    """One server, and the file that its users have locked."""

    def __init__(self, server: Server, *, users: BinaryIO, lock: BinaryIO) -> None:
        self._server, self._users, self._lock = server, users, lock
        self._used_at = 0.0

    def follow(self, now: float) -> bool:
        """Run the server if a process uses it, stop it if none has for long; say which."""
        if not lock_alone(self._users):
            self._used_at = now
            self._server.watch(now)
            return True
        # A process that comes now waits for our lock, and then for a new start.
        if now - self._used_at > LINGER_SECONDS and self._server.pid is not None:
            self._lock.truncate(0)
            self._server.stop()
        unlock(self._users)
        return False
