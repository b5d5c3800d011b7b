"""A prefork pool with lower latency, and its children.

It overrides internals of Celery's pool. Other packages import only the names below, so another pool
could replace it. `fleet/versions.py` names the versions that it was tested with.
"""

from fleet.pool.copies import end_copies
from fleet.pool.lookahead import has_reached
from fleet.pool.losses import was_sent
from fleet.pool.pipes import ask_to_stop, has_read, reader_of
from fleet.pool.pool import Pool, children_of
from fleet.pool.soft_stop import stoppable
from fleet.pool.stacks import stacks_of

__all__ = [
    "Pool",
    "ask_to_stop",
    "children_of",
    "end_copies",
    "has_reached",
    "has_read",
    "reader_of",
    "stacks_of",
    "stoppable",
    "was_sent",
]
