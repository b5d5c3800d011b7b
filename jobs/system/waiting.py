"""The tasks that wait for the system's workers.

A round does all pending work, so it is sent only if no message of it waits: that bounds their
number while no worker runs. None of them expires. Celery compares that time, which comes from the
sender's clock, with the worker's clock: if the two clocks differ by more, the worker drops every
round.
"""

from __future__ import annotations

from fleet import BrokerUnavailable
from jobs.core.conf import setting
from jobs.runs.dispatch import broker


def waiting_tasks(queue: str) -> set[str]:
    """Return the names of the tasks with a message in a queue; reads all of them.

    None of them if Redis is unavailable: the publish that follows fails, and is logged.
    """
    try:
        return broker().waiting_tasks(queue, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable:
        return set()
