"""The embedded Redis: starts empty, as hints are rebuilt from the rows."""

import signal

import redis

from config.embedded.accounts import Account
from config.embedded.binaries import redis_folder
from config.embedded.places import Places
from config.embedded.server import Server


class Redis(Server):
    """Redis 6.2 on a unix socket, without persistence."""

    name = "redis"
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def __init__(self, places: Places, *, account: Account) -> None:
        super().__init__(places, account=account)
        self._socket = places.sockets / "redis.sock"
        self.url = f"redis+socket://{self._socket}?virtual_host=0"

    def prepare(self) -> None:
        """Find the program; the server itself replaces an old socket."""
        self._program = redis_folder(self._places, account=self._account) / "redis-server"

    def command(self) -> list[str]:
        """Return the command line of the server."""
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._places.folder("redis", account=self._account)),
            "save": "",
            "appendonly": "no",
            # A full Redis must refuse, not drop messages.
            "maxmemory-policy": "noeviction",
        }
        settings = [part for key, value in options.items() for part in (f"--{key}", value)]
        return [str(self._program), *settings]

    def answers(self) -> bool:
        """Say whether the server answers a PING now."""
        client = redis.Redis(unix_socket_path=str(self._socket), socket_timeout=2)
        try:
            return bool(client.ping())
        except redis.RedisError as error:
            self.refusal = str(error)
            return False
        finally:
            client.close()
