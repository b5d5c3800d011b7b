"""Jobs: made, changed, listed, read, paused and run.

Each module adds its operations to `router`.
"""

from jobs.api.jobs import acting, bulk, reading, writing
from jobs.api.jobs.router import router

__all__ = ["acting", "bulk", "reading", "router", "writing"]
