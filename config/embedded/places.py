"""The paths of the embedded servers."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from config.embedded.accounts import Account


@dataclass(frozen=True)
class Places:
    """Every path of one installation's embedded servers."""

    state: Path

    @property
    def lock(self) -> Path:
        """The file that the keeper has locked."""
        return self.state / "keeper.lock"

    def users(self, server: str) -> Path:
        """The file that each user of a server has locked."""
        return self.state / f"{server}.users"

    @property
    def sockets(self) -> Path:
        """A folder with a short path: that of a unix socket has 107 bytes at most."""
        name = hashlib.sha256(bytes(self.state)).hexdigest()[:10]
        return Path(f"/tmp/fairshift-{os.geteuid()}-{name}")  # noqa: S108  its owner is checked

    def log(self, name: str) -> Path:
        """The log of `keeper`, `postgres` or `redis`."""
        return self.state / "server-logs" / f"{name}.log"

    def open_log(self, name: str) -> BinaryIO:
        """Open a log to append to; only its owner can see and read it."""
        path = self.log(name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "ab")

    def folder(self, name: str, *, account: Account) -> Path:
        """Make a private folder for the servers in the state folder, if it is missing."""
        path = self.state / name
        if not path.exists():
            path.mkdir(mode=0o700)
            account.give(path)
        return path

    def make_sockets(self, account: Account) -> None:
        """Make the socket folder; raise OSError if another user has made it."""
        try:
            self.sockets.mkdir(mode=0o700)
            account.give(self.sockets)
        except FileExistsError:
            pass
        found = self.sockets.lstat()
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if not private or found.st_uid not in {os.geteuid(), account.uid}:
            raise OSError(f"{self.sockets} is not a private folder of this user; remove it.")

    def remove_sockets(self) -> None:
        """Remove the socket folder and what is in it."""
        for path in self.sockets.glob("*"):
            path.unlink(missing_ok=True)
        self.sockets.rmdir()
