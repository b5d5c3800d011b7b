"""A file whose time says that this process works, for health checks.

FAIRSHIFT_ALIVE_FILE is its path; without it nothing is written. A worker touches the file at each
heartbeat while its event loop turns, and a beat at each round: also while PostgreSQL or Redis is
away, because a restart would not bring them back. A worker that Redis does not answer, while it
answers others, does not touch it: a restart opens new connections. One process, one file.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from fleet import log_events

log = logging.getLogger(__name__)


def touch() -> None:
    """Set the file's time to now; log a failure, which then also fails the health check."""
    if path := os.environ.get("FAIRSHIFT_ALIVE_FILE"):
        try:
            Path(path).touch()
        except OSError as error:
            log_events.ALIVE_FILE_FAILED.log(log, error=error)
