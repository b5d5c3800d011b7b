"""The user that runs the embedded servers: PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

SYSTEM_USER = "fairshift-servers"
"""Runs nothing else: every process of this user is a superuser of the database."""
USERADD = (
    *("useradd", "--system", "--user-group", "--no-create-home"),
    *("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", SYSTEM_USER),
)
# Not every PATH has the folder of useradd.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class Account:
    """The user that runs the servers; all None for the current user."""

    uid: int | None = None
    gid: int | None = None
    extra_groups: tuple[int, ...] | None = None

    def give(self, path: Path) -> None:
        """Make the account the owner of this file or folder."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """Return the user that runs the servers: for root a system user, which is made if missing.

    Raises OSError if it can't be made.
    """
    if os.geteuid() != 0:
        return Account()
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        entry = _make_user()
    return Account(uid=entry.pw_uid, gid=entry.pw_gid, extra_groups=())


def _make_user() -> pwd.struct_passwd:
    try:
        done = subprocess.run(
            USERADD, env=ENVIRONMENT, capture_output=True, text=True, errors="replace", check=False
        )
        problem = done.stderr.strip()
    except OSError as error:
        problem = str(error)
    try:
        # Also if useradd failed: another process may have made the user.
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        raise OSError(
            f"PostgreSQL does not run as root, and its system user could not be made: {problem}."
            f" Run `{' '.join(USERADD)}`, or set DATABASE_URL and REDIS_URL."
        ) from None
