"""The process that owns the embedded servers while clients are connected to it.

A client sends one line, `use postgres redis`, gets one line of JSON with the URLs or an error, and
keeps the connection open. `status` and `stop` are the other two lines. Single-threaded: the kernel
ends the servers when the thread that started them ends.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import time
from types import FrameType

from config.embedded.accounts import server_account
from config.embedded.care import Care
from config.embedded.locks import take_lock
from config.embedded.places import Places
from config.embedded.postgres import Postgres, forget_variables
from config.embedded.redis import Redis

LINGER_SECONDS = 3.0
TICK_SECONDS = 0.2


def serve(places: Places, *, lock: int | None) -> None:
    """Run until no client has been connected for LINGER_SECONDS; leave only data and logs.

    `lock` is the descriptor of the lock that the starting process took.
    """
    held = lock if lock is not None else take_lock(places.lock)
    if held is None:
        raise SystemExit(f"A supervisor runs already: {places.lock} is locked.")
    os.set_inheritable(held, False)
    forget_variables()
    try:
        places.remove_old_logs()
        Supervisor(places).run()
    except OSError as error:
        raise SystemExit(str(error)) from error
    finally:
        # Removed while it is still locked: a waiting process then makes a new file.
        places.lock.unlink(missing_ok=True)


class Supervisor:
    """The servers, the connected clients, and the loop that serves them."""

    def __init__(self, places: Places) -> None:
        account = server_account()
        self._places = places
        self._care = {
            server.name: Care(server, places=places, account=account)
            for server in (Postgres(places, account=account), Redis(places, account=account))
        }
        self._selector = selectors.DefaultSelector()
        self._users: set[socket.socket] = set()
        self._stopping = False
        places.make_sockets(account)

    def run(self) -> None:
        """Serve until no client is left or a signal comes, then stop the servers."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        listener = self._listen()
        idle_since = time.monotonic()
        while not self._stopping:
            for key, _ in self._selector.select(TICK_SECONDS):
                if key.fileobj is listener:
                    self._selector.register(listener.accept()[0], selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
            now = time.monotonic()
            for care in self._care.values():
                care.watch(now)
            if self._users:
                idle_since = now
            elif now - idle_since > LINGER_SECONDS:
                break
        # First the socket: a new client then waits for the lock and starts a new supervisor.
        self._places.control.unlink(missing_ok=True)
        listener.close()
        for care in self._care.values():
            care.stop()
        self._places.remove_sockets()

    def _listen(self) -> socket.socket:
        self._places.control.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self._places.control))
        listener.listen(128)
        self._selector.register(listener, selectors.EVENT_READ)
        return listener

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _read(self, client: socket.socket) -> None:
        try:
            line = client.recv(1024).decode().strip()
        except OSError:
            line = ""
        if not line:
            self._users.discard(client)
            self._selector.unregister(client)
            client.close()
            return
        with contextlib.suppress(OSError):  # the client is gone; its end is read next
            client.sendall(json.dumps(self._answer(line, client)).encode() + b"\n")

    def _answer(self, line: str, client: socket.socket) -> dict[str, object]:
        verb, *names = line.split()
        if verb == "stop":
            self._stopping = True
        if verb == "use":
            self._users.add(client)
            try:
                for name in names:
                    if self._care[name].pid is None:
                        self._care[name].begin()
            except OSError as error:
                return {"error": str(error)}
        running = {name: care for name, care in self._care.items() if care.pid is not None}
        return {
            "pid": os.getpid(),
            "clients": len(self._users),
            "urls": {name: care.server.url for name, care in running.items()},
            "pids": {name: care.pid for name, care in running.items()},
        }
