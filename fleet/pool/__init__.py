"""The prefork pool, by Celery's own door, and its children.

Children pull their jobs from one socket, and write their results into one pipe. Other packages
import only the names below.
"""

from fleet.pool.copies import end_copies
from fleet.pool.job import Job
from fleet.pool.prefork import TaskPool, children_of
from fleet.pool.soft_stop import stoppable
from fleet.pool.stacks import stacks_of

__all__ = ["Job", "TaskPool", "children_of", "end_copies", "stacks_of", "stoppable"]
