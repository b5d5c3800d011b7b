"""Runs: submitted, listed, read, cancelled and retried.

Each module adds its operations to `router`.
"""

from jobs.api.runs import acting, reading, submitting
from jobs.api.runs.router import router

__all__ = ["acting", "reading", "router", "submitting"]
