"""The classes and keys of Fairshift's advisory locks of PostgreSQL.

All have two keys, so that a project's own locks with one key never conflict. SQL files have the
class as a number; a test finds every use.
"""

from __future__ import annotations

from enum import IntEnum


class LockClass(IntEnum):
    """The first key. The second is 0, or `hashtext` of a name: two names may share a lock."""

    PARTITIONS = 1717
    """Key 0: making the partitions of a day."""
    OWNER_CAP = 1718
    """Key: an owner's slug. Counting the active runs of an owner with `max_running`."""
    LOCK_KEY = 1719
    """Key: a run's lock key. Counting its holders."""
    VERB = 1720
    """Key: a function's module and qualified name. Running a verb made with `sql.alone`."""
    SHARING = 1721
    """Key 0: sending owners' limits to the fair queues."""
    OWNER_CALENDARS = 1722
    """Key: an owner's slug. Shared by admissions, exclusive for changes of its calendars."""
    PERIODIC_TASKS = 1723
    """Key 0: writing PeriodicTasks of jobs with an interval in seconds."""
    DEMO = 1724
    """Key 0: the demo, one at a time on one database."""
    NOTICE_LISTENERS = 1725
    """Key 0: comparing the listener for webhooks and mails with those that ask for ends."""
    ROLLOUT = 1726
    """Key: a submission's id. Shared by admissions, exclusive for a rollout's stop and releases."""
