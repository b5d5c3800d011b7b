"""Runs: submitted, listed, read, cancelled, retried, started outside their windows; their logs.

Each module adds its operations to `router`.
"""

from jobs.api.runs import acting, logs, reading, submitting
from jobs.api.runs.router import router

__all__ = ["acting", "logs", "reading", "router", "submitting"]
