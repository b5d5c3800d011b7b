"""Where the embedded servers live, and as whom they run."""

import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

UNPRIVILEGED_USER = "nobody"


@dataclass(frozen=True)
class Account:
    """The user that the servers run as; all None when that is who we are already."""

    uid: int | None = None
    gid: int | None = None
    extra_groups: tuple[int, ...] | None = None

    def give(self, path: Path) -> None:
        """Make the account the owner of this file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """Return who runs the servers: PostgreSQL refuses to run as root, so root uses `nobody`."""
    if os.geteuid() != 0:
        return Account()
    entry = pwd.getpwnam(UNPRIVILEGED_USER)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid, extra_groups=())


@dataclass(frozen=True)
class Places:
    """Every path of one installation's embedded servers."""

    state: Path

    @property
    def lock(self) -> Path:
        """Locked for as long as a supervisor lives."""
        return self.state / "supervisor.lock"

    @property
    def sockets(self) -> Path:
        """A short folder: a unix socket's path has 107 bytes at most, a project's may have more."""
        name = hashlib.sha256(bytes(self.state)).hexdigest()[:10]
        return Path(f"/tmp/fairshift-{os.geteuid()}-{name}")  # noqa: S108  its owner is checked

    @property
    def control(self) -> Path:
        """The supervisor's own socket."""
        return self.sockets / "control.sock"

    def log(self, name: str) -> Path:
        """The log of `supervisor`, `postgres` or `redis`."""
        return self.state / f"{name}.log"

    def folder(self, name: str, *, account: Account) -> Path:
        """Make a private folder for the servers in the state folder, unless it exists."""
        path = self.state / name
        if not path.exists():
            path.mkdir(mode=0o700)
            account.give(path)
        return path

    def make_sockets(self, account: Account) -> None:
        """Make the socket folder; raises OSError when somebody else made it first."""
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
