"""Submissions: made, forecast, listed, read, watched, cancelled.

Each module adds its operations to `router`.
"""

from jobs.api.submissions import acting, fitting, reading, submitting, watching
from jobs.api.submissions.router import router

__all__ = ["acting", "fitting", "reading", "router", "submitting", "watching"]
