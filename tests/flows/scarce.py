"""Loaded into a worker beside its tasks, for a shorter patience.

NO_CHILD_SECONDS is how long the worker waits without any process.
"""

import os

from fleet.pool import children

children.NO_CHILD_SECONDS = float(os.environ.get("NO_CHILD_SECONDS", children.NO_CHILD_SECONDS))
