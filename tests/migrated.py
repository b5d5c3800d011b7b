"""PostgreSQL's data with a migrated test database, made once a day, of which each run has a copy.

Creating and migrating a database takes 7 s of CPU time, a copy 0.2 s. The data is kept beside
pytest's cache, under a name made from all that it consists of: migrations, models, settings,
libraries. A day has its own: the day's partitions are in it. All copies have the same
system_identifier, so the check E204 cannot tell them apart.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.state_dirs import data_in, new_state_dir, remove_state_dir, stop_servers

ROOT: Final = Path(__file__).parent.parent
CACHE: Final = ROOT / f".pytest_cache/migrated-{os.geteuid()}"
MADE_OF: Final = (
    *("requirements.lock", "config/settings.py", "config/embedded"),
    *("jobs/migrations", "jobs/models", "jobs/system/periodic.py"),
)
KEPT: Final = 3
"""The newest copies, which stay: those of other environments and of code that is tried out."""


def copy_to(data: Path) -> None:
    """Copy the data, with the owner of the files; make it first if it is missing."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = CACHE / key(ROOT)
        if not kept.exists():
            _make(kept)
            folders = [path for path in CACHE.iterdir() if path.is_dir()]
            for old in sorted(folders, key=lambda path: path.stat().st_ctime)[:-KEPT]:
                shutil.rmtree(old)
        _copy(kept, data)


def key(project: Path) -> str:
    """Return the name of the data that fits a project's files, on this day."""
    facts = sha256(f"{sys.version} {sys.prefix}".encode())
    for path in _files(project):
        facts.update(f"{path.relative_to(project)}\0".encode() + path.read_bytes() + b"\0")
    return f"{datetime.now(UTC):%Y%m%d}-{facts.hexdigest()[:16]}"


def _files(project: Path) -> Iterator[Path]:
    for place in (project / name for name in MADE_OF):
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (path for path in found if path.suffix in {".lock", ".py", ".sql"})


def _make(kept: Path) -> None:
    state = new_state_dir()
    given = {"FAIRSHIFT_STATE_DIR": str(state), "DJANGO_SETTINGS_MODULE": "config.settings"}
    # Without the variables of one run: all runs of the day have this copy.
    left_out = ("DATABASE_URL", "REDIS_URL", "FAIRSHIFT_")
    environ = {name: one for name, one in os.environ.items() if not name.startswith(left_out)}
    try:
        subprocess.run(
            [sys.executable, "-m", "tests.migrated"], env=environ | given, cwd=ROOT, check=True
        )
        stop_servers(state)
        draft = kept.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        _copy(data_in(state), draft)
        draft.rename(kept)
    finally:
        remove_state_dir(state)


def _copy(data: Path, to: Path) -> None:
    subprocess.run(["cp", "-a", data, to], check=True)


def main() -> None:
    """Make the test database on the servers of the state folder."""
    import django

    django.setup()
    from django.db import connection

    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()


if __name__ == "__main__":
    main()
