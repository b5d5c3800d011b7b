"""Active runs whose tasks report how far they are."""

from __future__ import annotations

import json
from typing import Final, NamedTuple
from uuid import UUID

from jobs.core import sql
from jobs.models import TaskProgress

# Active runs are few: each has a slot. A report of an earlier attempt does not count.
_NEWEST: Final = """
SELECT r.id, o.slug AS owner, r.task, r.progress
FROM jobs_run r JOIN jobs_owner o ON o.id = r.owner_id
WHERE r.state IN ('admitted', 'running', 'cancelling')
    AND (r.progress ->> 'token')::int = r.token
ORDER BY (r.progress ->> 'at')::float8 DESC, r.id LIMIT %s
"""


class Reporting(NamedTuple):
    """An active run, and what its task has reported last."""

    id: UUID
    owner: str
    task: str
    progress: TaskProgress


def newest_progress(*, most: int) -> list[Reporting]:
    """Return the `most` running runs whose tasks reported progress last, the newest first."""
    return [
        Reporting(
            row["id"], row["owner"], row["task"], TaskProgress.stored(json.loads(row["progress"]))
        )
        for row in sql.query(_NEWEST, [most])
    ]
