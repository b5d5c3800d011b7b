"""A pytest plugin: the tests get PostgreSQL and Redis of their own, with empty data.

Loaded with `-p` before Django's settings are, so that a flush or a kill in a
test never meets the data of a running `make up`. With DATABASE_URL and
REDIS_URL given, those servers are used as they are.
"""

import atexit
import os
import shutil
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

from tests import STATES_IN

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def new_state_dir() -> Path:
    """Return a new state folder that the servers' user can reach, also as root."""
    path = Path(tempfile.mkdtemp(prefix="fairshift-test-", dir=os.environ.get(STATES_IN)))
    path.chmod(0o755)
    # WhiteNoise warns in each test process if there is none.
    (path / "static").mkdir()
    return path


def remove_own_servers(path: Path, *, owner: int) -> None:
    """Remove them at the end of the test run, not at the end of a child that it forked."""
    if os.getpid() == owner:
        remove_state_dir(path)


def remove_state_dir(path: Path) -> None:
    """Stop the servers that use this state folder, if any, and remove it."""
    # Not before: this module is loaded before the project. Not as a command, whose start costs
    # half a second of CPU time.
    from config.embedded.__main__ import stop
    from config.embedded.places import Places

    with redirect_stdout(None):
        stop(Places(path))
    shutil.rmtree(path)


if not (os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL")):
    own_state_dir = new_state_dir()
    os.environ["FAIRSHIFT_STATE_DIR"] = str(own_state_dir)
    atexit.register(remove_own_servers, own_state_dir, owner=os.getpid())
