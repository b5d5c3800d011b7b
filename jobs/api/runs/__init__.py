"""Runs: submitted, listed, read, cancelled, retried, started outside their windows.

Each module adds its operations to `router`.
"""

from jobs.api.runs import acting, overriding, reading, submitting
from jobs.api.runs.router import router

__all__ = ["acting", "overriding", "reading", "router", "submitting"]
