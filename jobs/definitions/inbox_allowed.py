"""What messages may touch through the inbox: the owners and tasks that INBOX_ALLOWED names.

A message does not say who sent it. Without this setting whoever may write to the broker could run
any task for any owner; with it, only these, and no job of another task is changed or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.errors import OptionError
from jobs.definitions.placement import JobKey

SEE: Final = "see the setting INBOX_ALLOWED (FAIRSHIFT_INBOX_ALLOWED)"

_TASKS: Final = """
SELECT j.owner_id, j.key, j.task FROM jobs_job j
JOIN unnest(%s::bigint[], %s::text[]) AS p(owner_id, key)
ON j.owner_id = p.owner_id AND j.key = p.key
"""


def patterns_of(slug: str) -> Sequence[str]:
    """Return the patterns of the tasks that messages may touch for an owner, at least one.

    Raises OptionError when there is none.
    """
    pairs = [word.partition(":") for word in setting("INBOX_ALLOWED")]
    patterns = [task for owner, _, task in pairs if fnmatchcase(slug, owner)]
    if not patterns:
        raise OptionError("owner", f"{slug!r:.80} is not open to messages: {SEE}")
    return patterns


def refuse_tasks(slug: str, tasks: Iterable[str], patterns: Sequence[str]) -> None:
    """Raise OptionError for the first of these tasks that messages may not touch."""
    for task in set(tasks):
        if not any(fnmatchcase(task, pattern) for pattern in patterns):
            raise OptionError("task", f"{task!r:.220} of {slug} is not open to messages: {SEE}")


def tasks_of(job_keys: Iterable[JobKey]) -> dict[JobKey, str]:
    """Return the tasks of the jobs that there are."""
    wanted = list(job_keys)
    owners, keys = [owner for owner, _ in wanted], [key for _, key in wanted]
    rows = sql.query(_TASKS, [owners, keys]) if wanted else []
    return {(row["owner_id"], row["key"]): row["task"] for row in rows}
