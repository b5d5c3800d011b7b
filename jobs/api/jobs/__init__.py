"""Jobs: made, changed, listed, read, paused and run; their backfills.

Each module adds its operations to `router`.
"""

from jobs.api.jobs import acting, backfills, bulk, reading, writing
from jobs.api.jobs.router import router

__all__ = ["acting", "backfills", "bulk", "reading", "router", "writing"]
