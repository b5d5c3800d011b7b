"""A pytest plugin: PostgreSQL of our own begins with a migrated test database.

Loaded with `-p` after `tests.own_servers`, before the servers start.
"""

import os
from pathlib import Path

from tests.migrated import copy_to
from tests.own_servers import IS_DATABASE_OWN
from tests.state_dirs import data_in

if IS_DATABASE_OWN:
    copy_to(data_in(Path(os.environ["FAIRSHIFT_STATE_DIR"])))
