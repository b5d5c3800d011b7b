"""Every advisory lock of PostgreSQL that Fairshift takes: its class, and what its key is.

All have two keys, so that a project's own locks with one key never meet ours. SQL files write the
class as a number; a test finds every use.
"""

from __future__ import annotations

from enum import IntEnum


class LockClass(IntEnum):
    """The first key. The second is 0, or `hashtext` of a name: two names may share a lock."""

    PARTITIONS = 1717
    """Key 0: who makes the partitions of a day."""
    OWNER_CAP = 1718
    """Key: an owner's slug. Who counts the running runs of an owner with `max_running`."""
    LOCK_KEY = 1719
    """Key: a run's lock key. Who counts its holders."""
    VERB = 1720
    """Key: a function's module and qualified name. Who runs a verb made with `sql.alone`."""
    SHARING = 1721
    """Key 0: who sends owners' limits to the fair queues."""
    OWNER_CALENDARS = 1722
    """Key: an owner's slug. Shared by admissions, exclusive for a change of its calendars."""
    PERIODIC_TASKS = 1723
    """Key 0: who writes a PeriodicTask of a job with an interval in seconds."""
    DEMO = 1724
    """Key 0: the demo, one at a time on one database."""
