"""A pytest plugin: the tests get PostgreSQL and Redis of their own, with empty data.

Loaded with `-p` before Django's settings are, so that a flush or a kill in a
test never meets the data of a running `make up`. With DATABASE_URL and
REDIS_URL given, those servers are used as they are.
"""

import atexit
import os
from pathlib import Path
from typing import Final

from tests.state_dirs import new_state_dir, remove_state_dir

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
ARE_OWN: Final = not (os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"))
"""Whether at least one server is."""
IS_DATABASE_OWN: Final = not os.environ.get("DATABASE_URL")


def remove_own_servers(path: Path, *, owner: int) -> None:
    """Remove them at the end of the test run, not at the end of a child that it forked."""
    if os.getpid() == owner:
        remove_state_dir(path)


if ARE_OWN:
    own_state_dir = new_state_dir()
    os.environ["FAIRSHIFT_STATE_DIR"] = str(own_state_dir)
    atexit.register(remove_own_servers, own_state_dir, owner=os.getpid())
