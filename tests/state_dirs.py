"""State folders of the servers of tests."""

import os
import shutil
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

from tests import STATES_IN


def new_state_dir() -> Path:
    """Return a new state folder that the servers' user can reach, also as root."""
    path = Path(tempfile.mkdtemp(prefix="fairshift-test-", dir=os.environ.get(STATES_IN)))
    path.chmod(0o755)
    # WhiteNoise warns in each test process if there is none.
    (path / "static").mkdir()
    return path


def remove_state_dir(path: Path) -> None:
    """Stop the servers that use this state folder, if any, and remove it."""
    stop_servers(path)
    shutil.rmtree(path)


def stop_servers(path: Path) -> None:
    """Stop the servers that use this state folder, if any."""
    # Not before: this module is loaded before the project. Not as a command, whose start costs
    # half a second of CPU time.
    from config.embedded.__main__ import stop
    from config.embedded.places import Places

    with redirect_stdout(None):
        stop(Places(path))


def data_in(path: Path) -> Path:
    """Return the folder of PostgreSQL's data in a state folder."""
    from config.embedded.places import Places
    from config.embedded.postgres import data_folder

    return data_folder(Places(path))
