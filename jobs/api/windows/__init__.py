"""Windows and freezes of calendars: requested, changed, and acted on.

Each module adds its operations to `router`; a window is requested at its calendar.
"""

from jobs.api.windows import acting, changing, reading
from jobs.api.windows.router import router

__all__ = ["acting", "changing", "reading", "router"]
