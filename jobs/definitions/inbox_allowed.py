"""What messages to the inbox may change: jobs of the owners and tasks in INBOX_ALLOWED.

The sender of a message is not known. Without this setting, anybody who can write to the broker
could run any task for any owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from jobs.core.conf import setting
from jobs.core.errors import OptionError

SEE: Final = "see the setting INBOX_ALLOWED (FAIRSHIFT_INBOX_ALLOWED)"


def patterns_of(slug: str) -> Sequence[str]:
    """Return the patterns of an owner's tasks that messages may change; OptionError without any."""
    pairs = [word.partition(":") for word in setting("INBOX_ALLOWED")]
    patterns = [task for owner, _, task in pairs if fnmatchcase(slug, owner)]
    if not patterns:
        raise OptionError("owner", f"{slug!r:.80} is not open to messages: {SEE}")
    return patterns


def refuse_tasks(slug: str, tasks: Iterable[str], patterns: Sequence[str]) -> None:
    """Raise OptionError for the first of these tasks that messages may not change."""
    for task in set(tasks):
        if not any(fnmatchcase(task, pattern) for pattern in patterns):
            raise OptionError("task", f"{task!r:.220} of {slug} is not open to messages: {SEE}")
